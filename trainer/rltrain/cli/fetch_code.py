"""``rltrain fetch-code``: brings a user's modules from an address into a folder, in a pod's init container."""

import hashlib
import posixpath
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from rltrain.api.errors import InvalidManifest, Problem, TrainingFailed

MAX_DOWNLOAD_BYTES = 256 * 1024 * 1024
MAX_UNPACKED_BYTES = 1024 * 1024 * 1024
MAX_FILES = 100_000
TIMEOUT_SECONDS = 60.0
_CHUNK = 1 << 20
_FIELD = "spec.code.uri"
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError)
"""What the standard library raises over a broken, encrypted or unknown archive."""


def fetch_code(url: str, out: Path = Path("/code"), sha256: str | None = None) -> None:
    """Download a .zip, .tar.gz, .tgz or .py file, check it and put its content below a folder.

    Args:
        url: http(s) address.
        out: folder that exists; files are put into it.
        sha256: expected hash of the downloaded file, in hexadecimal.

    Raises:
        InvalidManifest: the address, the hash or the archive isn't what the manifest says or may hold.
        TrainingFailed: the address didn't answer with a file.
    """
    name = _file_name(url)
    with tempfile.TemporaryFile() as archive:
        found = _download(url, archive)
        if sha256 is not None and found != sha256.lower():
            raise _invalid("sha256", f"the file at {url} has SHA-256 {found}, expected {sha256.lower()}")
        archive.seek(0)
        try:
            _unpack(name, archive, out)
        except _BROKEN as error:
            raise _invalid("url", f"can't unpack {name}: {error}") from error


def _file_name(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise _invalid("url", f"{url!r} is not an http or https address")
    name = posixpath.basename(urllib.parse.unquote(parts.path))
    if not name.endswith((".zip", ".tar.gz", ".tgz", ".py")):
        raise _invalid("url", f"{name!r} must end with .zip, .tar.gz, .tgz or .py")
    return name


def _download(url: str, target: IO[bytes]) -> str:
    """SHA-256 of what the address gave, which is written to the target."""
    # Only these two: a redirect must not reach the pod's own files.
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    digest, size = hashlib.sha256(), 0
    try:
        with opener.open(url, timeout=TIMEOUT_SECONDS) as response:
            while chunk := response.read(_CHUNK):
                size += len(chunk)
                if size > MAX_DOWNLOAD_BYTES:
                    raise _invalid("url", f"{url} is larger than {MAX_DOWNLOAD_BYTES >> 20} MiB")
                digest.update(chunk)
                target.write(chunk)
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise TrainingFailed(f"can't download {url}: {error}; check {_FIELD}.url and the pods' network") from error
    return digest.hexdigest()


def _unpack(name: str, archive: IO[bytes], out: Path) -> None:
    if name.endswith(".py"):
        with (out / name).open("wb") as target:
            shutil.copyfileobj(archive, target)
        return
    size = 0
    for count, (path, length, source) in enumerate(_entries(name, archive)):
        size += length
        if size > MAX_UNPACKED_BYTES or count >= MAX_FILES:
            raise _invalid("url", f"{name} unpacks to more than {MAX_UNPACKED_BYTES >> 20} MiB or {MAX_FILES} files")
        place = out / _safe(path, name)
        place.parent.mkdir(parents=True, exist_ok=True)
        with source, place.open("wb") as target:
            # An archive may lie about an entry's length: no more than it says is taken.
            target.write(source.read(length))


def _entries(name: str, archive: IO[bytes]) -> Iterator[tuple[str, int, IO[bytes]]]:
    """Path, length and content of each regular file; links, devices and folders are left out."""
    if name.endswith(".zip"):
        with zipfile.ZipFile(archive) as zipped:
            for info in zipped.infolist():
                is_link = (info.external_attr >> 16) & 0o170000 == 0o120000
                if not info.is_dir() and not is_link:
                    yield info.filename, info.file_size, zipped.open(info)
    else:
        with tarfile.open(fileobj=archive, mode="r:gz") as tarred:
            for member in tarred:
                content = tarred.extractfile(member) if member.isreg() else None
                if content is not None:
                    yield member.name, member.size, content


def _safe(path: str, archive: str) -> PurePosixPath:
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or "\\" in path or "\0" in path or not parts.parts:
        raise _invalid("url", f"{archive} holds the path {path!r}, which leads out of its folder")
    return parts


def _invalid(field: str, message: str) -> InvalidManifest:
    return InvalidManifest([Problem(f"{_FIELD}.{field}", message)])

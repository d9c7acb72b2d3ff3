"""A user's code is brought by HTTP, and an archive can't write outside its folder."""

import hashlib
import io
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rltrain.api.errors import InvalidManifest, TrainingFailed
from rltrain.cli import fetch_code as module
from rltrain.cli.fetch_code import fetch_code

Serve = Callable[[str, bytes], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Puts a file on a real HTTP server; its address."""
    files: dict[str, bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/to-a-file.py":
                self.send_response(302)
                self.send_header("Location", "file:///etc/passwd")
                self.end_headers()
                return
            body = files.get(self.path.partition("?")[0])
            self.send_response(200 if body is not None else 404)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()

    def put(name: str, body: bytes) -> str:
        files[f"/{name}"] = body
        return f"http://127.0.0.1:{server.server_port}/{name}"

    yield put
    server.shutdown()
    thread.join()
    server.server_close()


def zipped(**files: str) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return target.getvalue()


def tarred(members: dict[str, str], link: tuple[str, str] | None = None) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        if link is not None:
            info = tarfile.TarInfo(link[0])
            info.type, info.linkname = tarfile.SYMTYPE, link[1]
            archive.addfile(info)
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return target.getvalue()


def test_single_file_keeps_its_name(serve: Serve, tmp_path: Path) -> None:
    fetch_code(serve("my_env.py", b"X = 1") + "?version=3", tmp_path)

    assert (tmp_path / "my_env.py").read_text() == "X = 1"


@pytest.mark.parametrize("name", ["code.zip", "code.tar.gz", "code.tgz"])
def test_archive_is_unpacked_with_its_folders(serve: Serve, tmp_path: Path, name: str) -> None:
    files = {"pkg/__init__.py": "", "pkg/envs/maze.py": "SIZE = 3"}
    body = zipped(**files) if name.endswith("zip") else tarred(files)

    fetch_code(serve(name, body), tmp_path, hashlib.sha256(body).hexdigest().upper())

    assert (tmp_path / "pkg/envs/maze.py").read_text() == "SIZE = 3"
    assert (tmp_path / "pkg/__init__.py").exists()


def test_wrong_hash_names_both_and_leaves_nothing(serve: Serve, tmp_path: Path) -> None:
    with pytest.raises(InvalidManifest, match=r"spec.code.uri.sha256.*expected 0{64}"):
        fetch_code(serve("my_env.py", b"X = 1"), tmp_path, "0" * 64)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["../evil.py", "/evil.py", "pkg/../../evil.py", "..\\evil.py"])
@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_path_that_leads_out_of_the_folder_is_refused(serve: Serve, tmp_path: Path, path: str, kind: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    body = zipped(**{path: "X"}) if kind == "zip" else tarred({path: "X"})

    with pytest.raises(InvalidManifest, match="leads out of its folder"):
        fetch_code(serve(f"code.{kind}", body), out)

    assert list(tmp_path.rglob("*")) == [out]


def test_link_is_left_out_so_that_nothing_is_written_through_it(serve: Serve, tmp_path: Path) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    out.mkdir()
    elsewhere.mkdir()

    fetch_code(serve("code.tgz", tarred({"pkg/evil.py": "X"}, link=("pkg", str(elsewhere)))), out)

    assert not (out / "pkg").is_symlink()
    assert list(elsewhere.iterdir()) == []


def test_archive_that_unpacks_to_too_much_is_refused(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_UNPACKED_BYTES", 1 << 20)

    with pytest.raises(InvalidManifest, match="unpacks to more than"):
        fetch_code(serve("bomb.zip", zipped(**{"zeros.py": "0" * (2 << 20)})), tmp_path)


def test_download_that_is_too_large_is_refused(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_DOWNLOAD_BYTES", 10)

    with pytest.raises(InvalidManifest, match="is larger than"):
        fetch_code(serve("big.py", b"0" * 11), tmp_path)


@pytest.mark.parametrize("url", ["file:///etc/passwd.py", "ftp://host/a.py", "code.py", "http:///a.py"])
def test_only_http_addresses_are_taken(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidManifest, match="not an http or https address"):
        fetch_code(url, tmp_path)


def test_redirect_to_the_pods_own_files_is_not_followed(serve: Serve, tmp_path: Path) -> None:
    address = serve("x", b"").rpartition("/")[0]

    with pytest.raises(TrainingFailed, match="can't download"):
        fetch_code(f"{address}/to-a-file.py", tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_address_without_a_file_says_so(serve: Serve, tmp_path: Path) -> None:
    address = serve("x", b"").rpartition("/")[0]

    with pytest.raises(TrainingFailed, match="404"):
        fetch_code(f"{address}/nothing.py", tmp_path)


def test_unknown_ending_and_broken_archive_are_told(serve: Serve, tmp_path: Path) -> None:
    with pytest.raises(InvalidManifest, match=r"must end with \.zip"):
        fetch_code(serve("code.rar", b""), tmp_path)
    with pytest.raises(InvalidManifest, match="can't unpack"):
        fetch_code(serve("code.zip", b"not a zip"), tmp_path)
    with pytest.raises(InvalidManifest, match="can't unpack"):
        fetch_code(serve("code.tar.gz", b"not a tar"), tmp_path)

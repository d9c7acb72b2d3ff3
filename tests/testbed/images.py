"""The project's images: their tags, and building them without Docker."""

import hashlib
import os
import shutil
from pathlib import Path

from .base_image import ensure_base
from .layout import CACHE, LOGS, ROOT, RUNTIME
from .shell import run, stream

DOCKERFILE = ROOT / "images" / "Dockerfile"
TARGETS = ("trainer", "operator")
SHARED_SOURCES = ("images/Dockerfile", "pyproject.toml", "README.md", "LICENSE", "trainer", "operator")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
PASSED_ON = ("PIP_DEFAULT_TIMEOUT", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


def tag(target: str, root: Path = ROOT) -> str:
    """A tag that changes with anything that goes into the image."""
    digest = hashlib.sha256()
    for name in (*SHARED_SOURCES, f"requirements/{target}.txt"):
        source = root / name
        files = sorted(source.rglob("*")) if source.is_dir() else [source]
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                content = hashlib.sha256(file.read_bytes()).hexdigest()
                digest.update(f"{file.relative_to(root)} {content}\n".encode())
    return digest.hexdigest()[:16]


def tags(root: Path = ROOT) -> dict[str, str]:
    """Target -> tag."""
    return {target: tag(target, root) for target in TARGETS}


def buildah(*words: str | Path) -> list[str]:
    """The words that run buildah with its storage in our cache, and its mounts gone when it ends."""
    storage = ("--root", CACHE / "containers", "--runroot", RUNTIME / "containers")
    return [*map(str, ("unshare", "--mount", "buildah", *storage, "--storage-driver", "overlay", *words))]


def build_and_push(target: str, reference: str) -> None:
    """Build one target and push it to a registry that speaks plain HTTP.

    The machine's certificates are lent to the build, for the package index may be behind an inspecting proxy.
    """
    ensure_base()
    arguments = [f"--build-arg={name}={os.environ[name]}" for name in PASSED_ON if name in os.environ]
    if CERTIFICATES.exists():
        arguments += [f"--volume={CERTIFICATES}:{CERTIFICATES}:ro", f"--build-arg=PIP_CERT={CERTIFICATES}"]
    stream(
        *buildah("build", "--isolation=chroot", "--network=host", "--layers", "--pull-never"),
        *(f"--target={target}", f"--file={DOCKERFILE}", f"--tag={reference}", *arguments, str(ROOT)),
        log=LOGS / f"build-{target}.log",
    )
    push(reference, reference)
    # Earlier images go, and with them the layers that nothing else uses: gigabytes, after a change of dependencies.
    name, _, tag = reference.rpartition(":")
    listed = run(*buildah("images", "--format={{.Name}}:{{.Tag}}")).split()
    if old := [known for known in listed if known.startswith(f"{name}:") and not known.endswith(f":{tag}")]:
        run(*buildah("rmi", *old))


def push(reference: str, destination: str) -> None:
    """Push a built image to a registry that speaks plain HTTP, under whatever reference."""
    run(
        *buildah("push", "--tls-verify=false", "--compression-format=zstd", "--compression-level=1"),
        *(reference, f"docker://{destination}"),
    )


def retagged(reference: str, tag: str) -> str:
    """The reference with another tag."""
    return f"{reference.rpartition(':')[0]}:{tag}"


def trim_registry(data: Path, most_bytes: int = 12 * 2**30) -> None:
    """Throw the registry's images away when they have become too many: the next push brings those in use."""
    if sum(file.stat().st_size for file in data.rglob("*") if file.is_file()) > most_bytes:
        shutil.rmtree(data)


def build_with_docker(target: str, reference: str) -> None:
    """Build one target with the machine's Docker engine."""
    arguments = [f"--build-arg={name}={os.environ[name]}" for name in PASSED_ON if name in os.environ]
    stream(
        *("docker", "build", f"--target={target}", f"--file={DOCKERFILE}", f"--tag={reference}"),
        *(*arguments, str(ROOT)),
        log=LOGS / f"build-{target}.log",
        env={"DOCKER_BUILDKIT": "1"},
    )

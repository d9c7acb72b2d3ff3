"""A container image of one static program, written without any container tool."""

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any


def _tar(files: dict[str, bytes], mode: int = 0o644) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def write_image(program: Path, reference: str, archive: Path) -> None:
    """Write an OCI archive whose image, named reference, runs the program (as uid 1000) and holds no other file."""
    blobs: dict[str, bytes] = {}

    def blob(media_type: str, content: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    def document(value: object) -> bytes:
        return json.dumps(value, separators=(",", ":")).encode()

    layer = _tar({program.name: program.read_bytes()}, mode=0o755)
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": [f"/{program.name}"], "User": "1000:1000"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    kind = "application/vnd.oci.image"
    manifest = blob(
        f"{kind}.manifest.v1+json",
        document(
            {
                "schemaVersion": 2,
                "mediaType": f"{kind}.manifest.v1+json",
                "config": blob(f"{kind}.config.v1+json", document(config)),
                "layers": [blob(f"{kind}.layer.v1.tar+gzip", gzip.compress(layer, 1, mtime=0))],
            }
        ),
    )
    manifest["annotations"] = {
        "io.containerd.image.name": reference,
        "org.opencontainers.image.ref.name": reference.rsplit(":", 1)[1],
    }
    index = {"schemaVersion": 2, "mediaType": f"{kind}.index.v1+json", "manifests": [manifest]}
    archive.write_bytes(
        _tar({"oci-layout": document({"imageLayoutVersion": "1.0.0"}), "index.json": document(index), **blobs})
    )

"""The command line as users have it, beside a cluster."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from e2e.kube import ROOT, Object
from rltrain.api.resolve import to_yaml

_PROGRAM = str(ROOT / ".venv/bin/rltrain")


def rltrain(*args: str, env: Mapping[str, str] | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    done = subprocess.run(
        [_PROGRAM, *args], capture_output=True, text=True, timeout=600, env={**os.environ, **(env or {})}
    )
    if check and done.returncode != 0:
        raise AssertionError(f"rltrain {' '.join(args)} exited {done.returncode}:\n{done.stdout}{done.stderr}")
    return done


@contextmanager
def starting(*args: str) -> Iterator["subprocess.Popen[str]"]:
    """Run it beside what the tests do meanwhile."""
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen([_PROGRAM, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def written(folder: Path, manifest: Object) -> str:
    """Path of a file with the manifest."""
    path = folder / f"{manifest['metadata']['name']}.yaml"
    path.write_text(to_yaml(manifest))
    return str(path)

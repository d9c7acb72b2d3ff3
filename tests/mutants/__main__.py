"""Try mutants in a copy of the project: `python -m mutants [words of their names or meanings]`."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mutants.table import Mutant, load

ROOT = Path(__file__).parents[2]
FAILED = 1
"""pytest's exit code where tests ran and some failed; others mean that none ran."""


def main(words: Sequence[str]) -> int:
    """Returns 1 when a mutant lives on, or can't be tried."""
    chosen = [mutant for mutant in load() if all(word in f"{mutant.name} {mutant.meaning}" for word in words)]
    if not chosen:
        print(f"no mutant has {' '.join(words)} in its name or meaning", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="rltrain-mutants-") as folder:
        copy = Path(folder)
        _copy_project(copy)
        _import_what_is_heavy()
        tests = sorted({mutant.test for mutant in chosen})
        if (code := _run(copy, tests, copy / "log")) != 0:
            print((copy / "log").read_text())
            print(f"the tests must pass before anything is broken; pytest ended with {code}", file=sys.stderr)
            return 1
        troubles = [mutant.name for mutant in chosen if not _dies(mutant, copy)]
    print(f"{len(chosen) - len(troubles)} of {len(chosen)} mutants are caught{': not ' if troubles else ''}", end="")
    print(", ".join(troubles))
    return 1 if troubles else 0


def _copy_project(to: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, to / name)


def _import_what_is_heavy() -> None:
    """Once, before the tests' processes are forked; nothing of the project, for that is what changes."""
    import gymnasium  # noqa: F401
    import hypothesis  # noqa: F401
    import numpy  # noqa: F401
    import torch  # noqa: F401


def _dies(mutant: Mutant, copy: Path) -> bool:
    path = copy / mutant.file
    sound = path.read_text()
    if (found := sound.count(mutant.old)) != 1:
        print(f"{mutant.name}: its old text occurs {found} times in {mutant.file}: write it anew")
        return False
    path.write_text(sound.replace(mutant.old, mutant.new))
    try:
        code = _run(copy, [mutant.test], copy / "log")
    finally:
        path.write_text(sound)
    verdict = {FAILED: "caught", 0: "LIVES ON"}.get(code, f"not tried, pytest ended with {code}")
    print(f"{mutant.name}: {verdict}: {mutant.meaning}", flush=True)
    if code not in (0, FAILED):
        print((copy / "log").read_text())
    return code == FAILED


def _run(copy: Path, tests: Sequence[str], log: Path) -> int:
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _pytest(copy, tests, log)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _pytest(copy: Path, tests: Sequence[str], log: Path) -> None:
    """In a child: never returns."""
    code = 70
    try:
        with log.open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        os.chdir(copy)
        sys.dont_write_bytecode = True  # an edit within a second leaves the file's time as it was
        folders = [str(copy / "tests"), str(copy / "trainer"), str(copy / "operator")]
        sys.path[:0] = folders
        os.environ["PYTHONPATH"] = os.pathsep.join(folders)
        import pytest

        code = int(pytest.main(["-x", "-q", "--no-header", "-p", "no:cacheprovider", *tests]))
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

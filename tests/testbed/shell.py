"""Running other programs, and saying what a step took."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path


class TestbedError(Exception):
    """The test cluster can't be had; the message says why."""

    __test__ = False  # not a test class, whatever pytest makes of the name


def run(
    *command: str | Path,
    input: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    check: bool = True,
    timeout: float | None = None,
) -> str:
    """The command's standard output; TestbedError with the end of its output when it fails and check is set."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            input=input,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            text=True,
            capture_output=True,
            timeout=timeout,
        )
    except FileNotFoundError as error:
        raise TestbedError(f"{words[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise TestbedError(f"{' '.join(words)} took more than {timeout} s") from error
    if check and done.returncode != 0:
        tail = (done.stdout + done.stderr).strip()[-2000:]
        raise TestbedError(f"{' '.join(words)} ended with {done.returncode}: {tail}")
    return done.stdout


def stream(*command: str | Path, log: Path, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> None:
    """Run a long command with its output in a log file; TestbedError with the log's end when it fails."""
    log.parent.mkdir(parents=True, exist_ok=True)
    words = [str(word) for word in command]
    with log.open("w") as output:
        code = subprocess.run(
            words, env={**os.environ, **(env or {})}, cwd=cwd, stdout=output, stderr=subprocess.STDOUT
        ).returncode
    if code != 0:
        raise TestbedError(f"{' '.join(words[:3])} … ended with {code} ({log}):\n{tail(log)}")


def tail(log: Path, lines: int = 30) -> str:
    """The last lines of a log, or nothing when there is none."""
    if not log.exists():
        return ""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


@contextmanager
def step(name: str) -> Iterator[None]:
    """Print the step's name and, once it is done, the seconds it took."""
    start = time.monotonic()
    print(f"{name} … ", end="", flush=True)
    try:
        yield
    except BaseException:
        print("failed", flush=True)
        raise
    print(f"{time.monotonic() - start:.1f} s", flush=True)


def wait_until(what: str, condition: Callable[[], bool], seconds: float, clue: Callable[[], str]) -> None:
    """Poll until the condition holds; TestbedError with the clue when it doesn't within the seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TestbedError(f"{what} not there after {seconds:.0f} s\n{clue()}")
        time.sleep(0.2)


def words(commands: Sequence[str]) -> str:
    """A list for a sentence: 'a, b and c'."""
    return " and ".join(filter(None, [", ".join(commands[:-1]), *commands[-1:]]))

"""Help is quick, mistakes are answered in a sentence, and exit codes mean what the docs say."""

import subprocess
import sys

import pytest

from rltrain.api.errors import Interrupted, TrainingFailed
from rltrain.cli import validate
from unit.cli.conftest import Command

_HEAVY = ("ray", "torch", "numpy", "gymnasium", "kubernetes", "kopf")


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["crd"], ["validate", "none.yaml"]])
def test_light_commands_import_nothing_heavy(args: list[str]) -> None:
    done = python(
        f"import sys; sys.argv = ['rltrain', *{args}]\n"
        "from rltrain.cli.main import main\n"
        "try: main()\n"
        f"finally: print([name for name in {_HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    assert done.stderr.splitlines()[-1] == "[]"


def test_help_lists_what_users_call_and_hides_what_pods_call(rltrain: Command) -> None:
    done = rltrain("--help")

    assert done.code == 0
    commands = ["run", "evaluate", "validate", "crd", "render", "submit", "status", "logs", "fetch", "delete"]
    assert all(f"\n  {command} " in done.out for command in commands)
    assert not any(f"\n  {command} " in done.out for command in ("head", "node", "fetch-code"))


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["vaildate"], "there is no command vaildate (did you mean validate?); rltrain --help"),
        (["validate"], "FILE is missing"),
        (["validate", "--sett", "a=b", "x"], "no option --sett (did you mean --set?); rltrain validate --help"),
        (["validate", "--set"], "--set needs a value"),
        (["logs", "x", "--tail", "many"], "--tail: must be a whole number"),
        (["logs", "x", "--tail", "-1"], "--tail: must be at least 0"),
        (["logs", "x", "--role", "hed"], "--role: must be one of head, "),
        (["status", "-o", "yaml"], "--output: must be json, not yaml"),
        (["status", "--watch=yes"], "--watch takes no value"),
        (["crd", "x"], "too many arguments"),
    ],
)
def test_usage_error_is_one_sentence_and_exit_2(rltrain: Command, args: list[str], words: str) -> None:
    done = rltrain(*args)

    assert done.code == 2
    assert words in done.err
    assert done.err.startswith("rltrain: ")
    assert len(done.err.splitlines()) == 1
    assert "--help shows the usage" in done.err


def _raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(validate, "load_all", fail)


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (TrainingFailed("no room left"), 1, "rltrain: no room left"),
        (Interrupted("a checkpoint was saved"), 130, "rltrain: a checkpoint was saved"),
        (KeyboardInterrupt(), 130, ""),
        (ZeroDivisionError("by zero"), 1, "rltrain: unexpected ZeroDivisionError: by zero"),
    ],
)
def test_failure_is_a_sentence_and_its_exit_code(
    rltrain: Command, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, words: str
) -> None:
    _raising(monkeypatch, error)

    done = rltrain("validate", "x")

    assert done.code == code
    assert done.err.strip().startswith(words)
    assert "Traceback" not in done.err


def test_debug_shows_the_traceback_wherever_it_stands() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _CRASH, "validate", "x", "--debug"], capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "ZeroDivisionError" in done.stderr


_CRASH = """
from rltrain.cli import main, validate
def fail(*_): raise ZeroDivisionError
validate.load_all = fail
main.main()
"""


def test_version_is_that_of_the_distribution(rltrain: Command) -> None:
    assert rltrain("--version").out.startswith("rltrain 0.")

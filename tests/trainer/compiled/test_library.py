"""When functions become native code, and when they had better not."""

from pathlib import Path
from typing import Any

import pytest
import torch

from rltrain.api.errors import TrainingFailed
from rltrain.compiled import library as library_module
from rltrain.compiled.build import Build
from rltrain.compiled.function import Function, Native
from rltrain.compiled.library import Library, _say
from rltrain.compiled.store import path_of


def double(x: torch.Tensor, y: torch.Tensor | None) -> tuple[torch.Tensor]:
    x.mul_(2)
    return (x if y is None else x + y,)


class Doubling:
    """Made anew by the compiling process."""

    def __init__(self) -> None:
        self.functions = {"double": Function(double)}


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLTRAIN_CACHE", str(tmp_path))
    _say.cache_clear()


def doubling(*, always: bool) -> Function:
    function = Doubling().functions["double"]
    function.compiler = Library(Doubling, "doubling", always=always)
    return function


def arguments() -> tuple[torch.Tensor, None]:
    return torch.arange(3.0), None


def keep(function: Function, native: Native, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have `native` lie where the function's code would."""
    x, _ = arguments()
    path = path_of("doubling", function.name, ((x.shape, x.dtype), None))
    path.parent.mkdir(parents=True)
    path.touch()
    monkeypatch.setattr(library_module, "_load", lambda found: native if found == str(path) else None)


def test_code_that_is_there_is_used_from_the_first_call_on(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def native(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        calls.append(len(tensors))
        return [tensors[0].mul_(2)]

    function = doubling(always=False)
    keep(function, native, monkeypatch)
    for expected in ([0, 2, 4], [0, 2, 4]):
        x, nothing = arguments()
        assert function(x, nothing)[0].tolist() == expected
        assert x.tolist() == expected, "the arguments at hand are changed once, not by the comparison as well"
    assert calls == [1, 1, 1]


def test_other_shapes_and_arguments_run_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    function = doubling(always=False)
    keep(function, lambda tensors: [tensors[0].mul_(2)], monkeypatch)
    function(*arguments())
    assert function(torch.ones(2), torch.ones(2))[0].tolist() == [3, 3]
    assert list(function.native) == [((torch.Size([3]), torch.float32), None)]


@pytest.mark.parametrize("what", ["result", "argument"])
def test_code_with_other_results_or_effects_is_never_used(
    what: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def wrong(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        return [2 * tensors[0]] if what == "argument" else [tensors[0].mul_(2) + 0.01]

    monkeypatch.setattr(library_module, "LOOK_SECONDS", 0.0)
    function = doubling(always=False)
    keep(function, wrong, monkeypatch)
    for _ in range(5):
        assert function(*arguments())[0].tolist() == [0, 2, 4]
    assert not function.native
    assert len([line for line in caplog.messages if "gives other results" in line]) == 1


def test_without_a_compiler_it_says_so_once_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setattr(library_module, "PAYS_AFTER", 0.0)
    for _ in range(2):
        function = doubling(always=False)
        for _ in range(3):
            assert function(*arguments())[0].tolist() == [0, 2, 4]
    assert len([line for line in caplog.messages if "no C++ compiler (no-such-compiler)" in line]) == 1


def test_code_that_is_always_wanted_and_cannot_be_made_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(TrainingFailed, match=r"compile: Always .*no C\+\+ compiler.*set compile to Auto or Never"):
        doubling(always=True)(*arguments())


def test_nothing_is_compiled_before_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(*_: Any, **__: Any) -> None:
        raise AssertionError("a short run has no use for a compiler")

    monkeypatch.setattr(Build, "begin", begin)
    monkeypatch.setattr(library_module, "LOOK_SECONDS", 0.0)
    function = doubling(always=False)
    for _ in range(10):
        function(*arguments())

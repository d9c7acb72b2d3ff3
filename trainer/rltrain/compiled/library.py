"""Library: native code for the functions of one object, from disk or from a compiler beside this process."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import torch

from rltrain.api.errors import TrainingFailed
from rltrain.compiled.build import Build, Request, why_not
from rltrain.compiled.function import Argument, Function, Native, Signature, given
from rltrain.compiled.store import path_of

log = logging.getLogger(__name__)

PAYS_AFTER: Final = 10.0
"""Seconds spent in functions without native code before it is made: about what making it costs."""
SHARE: Final = 0.02
"""Of these seconds, below which a function isn't worth the compiler's time."""
NICE: Final = 10
"""Of a compiler beside training."""
LOOK_SECONDS: Final = 0.5
TRIES: Final = 3
"""Calls on which native code may differ from the plain function: a tie may be broken either way, once."""


@dataclass
class _Entry:
    """A function with arguments of one kind.

    Attributes:
        path: where its native code lies once it is made.
        seconds: spent in it so far.
        next_look: when to look for native code again.
        tries: comparisons that failed.
    """

    function: Function
    signature: Signature
    path: Path
    seconds: float = 0.0
    next_look: float = 0.0
    tries: int = 0


class Library:
    """Compiler of an object's functions, each of which is traced in a process that makes the object anew.

    Args:
        make: makes an object whose `functions` have the same names and results; picklable.
        recipe: text that tells apart objects whose functions differ.
        always: wait for native code at a first call, rather than have it made beside training once as much time
            has gone into the plain functions as making it takes.
    """

    def __init__(self, make: Callable[[], Any], recipe: str, *, always: bool) -> None:
        self._make, self._recipe, self._always = make, recipe, always
        self._entries: dict[tuple[str, Signature], _Entry] = {}
        self._build: Build | None = None
        self._seconds = 0.0
        self._given_up = False

    def run(self, function: Function, signature: Signature, arguments: Sequence[Argument]) -> Sequence[torch.Tensor]:
        """The function's outcome, natively from now on where the code is there.

        Raises:
            TrainingFailed: native code is always wanted, and can't be made or isn't right.
        """
        entry = self._entries.get((function.name, signature))
        if entry is None:
            path = path_of(self._recipe, function.name, signature)
            entry = self._entries[function.name, signature] = _Entry(function, signature, path)
        now = time.perf_counter()
        if now >= entry.next_look and not self._given_up:
            entry.next_look = now + LOOK_SECONDS
            self._bring(entry)
            if entry.path.exists() and self._adopt(entry, arguments):
                return function.native[signature](given(arguments))
        begun = time.thread_time()  # of the processor, which others may be using as well
        result = function.function(*arguments)
        seconds = time.thread_time() - begun
        entry.seconds += seconds
        self._seconds += seconds
        return result

    def _bring(self, entry: _Entry) -> None:
        """Have made what is missing, if that pays by now."""
        while not entry.path.exists() and not self._given_up:
            if self._build is None and (self._always or self._seconds >= PAYS_AFTER):
                self._begin()
            elif self._build is not None and not self._build.running:
                failure, self._build = self._build.failure(), None
                if failure:
                    self._give_up(f"compiling failed: {failure}")
            if not self._always:
                return
            time.sleep(0.05)

    def _begin(self) -> None:
        reason = why_not()
        if reason:
            self._give_up(reason)
            return
        least = 0.0 if self._always else SHARE * self._seconds
        wanted = [each for each in self._entries.values() if each.seconds >= least and not each.path.exists()]
        missing = [Request(each.function.name, each.signature, each.path) for each in wanted]
        if missing:
            self._build = Build.begin(self._make, missing, nice=0 if self._always else NICE)

    def _adopt(self, entry: _Entry, arguments: Sequence[Argument]) -> bool:
        """Take native code into use, once it has done as the plain function does with these arguments."""
        native = _load(str(entry.path))
        ours, theirs = (tuple(None if each is None else each.clone() for each in arguments) for _ in range(2))
        expected, result = entry.function.function(*ours), native(given(theirs))
        if all(map(_alike, [*expected, *given(ours)], [*result, *given(theirs)])):
            entry.function.native[entry.signature] = native
            return True
        entry.tries += 1
        if entry.tries >= TRIES:
            entry.next_look = float("inf")
            self._give_up(f"the native code of {entry.function.name} gives other results ({entry.path})")
        return False

    def _give_up(self, reason: str) -> None:
        self._given_up = True
        if self._always:
            raise TrainingFailed(f"compile: Always can't be kept to, {reason}; set compile to Auto or Never")
        _say(f"{reason}; updates run as plain PyTorch, which takes several times as long")


@cache
def _say(message: str) -> None:
    """Log once a process."""
    log.warning("%s", message)


def _load(path: str) -> Native:
    # The class below torch._inductor.aoti_load_package, whose import would take seconds.
    loader = torch._C._aoti.AOTIModelPackageLoader(path, "model", False, 1, -1)
    native: Native = loader.run
    return native


def _alike(expected: torch.Tensor, result: torch.Tensor) -> bool:
    return expected.shape == result.shape and torch.allclose(expected, result, rtol=1e-3, atol=1e-4, equal_nan=True)

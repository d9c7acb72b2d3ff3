"""A user's own class that is told how training goes: `config.callbacks`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Final

from rltrain.api.errors import CallbackFailed, InvalidManifest, Problem
from rltrain.api.finite import finite
from rltrain.user_code import load

FIELD: Final = "spec.config.callbacks"
ON_EPISODE_END: Final = "on_episode_end"
ON_TRAIN_RESULT: Final = "on_train_result"
_HOOKS: Final = (ON_EPISODE_END, ON_TRAIN_RESULT)
_ELSEWHERE: Final = ("before_learn_on_batch", "on_learn_on_batch")


@dataclass
class Episode:
    """A finished episode of training, as `on_episode_end` gets it.

    Attributes:
        return_: undiscounted sum of its rewards.
        length: steps.
        worker: index of the worker that has sampled it; 0 is the driver.
        info: of its last step, as the environment gave it.
        by_policy: where there are several agents, the mean return of each policy's.
        custom_metrics: numbers to report, by names of your own.
    """

    return_: float
    length: int
    worker: int
    info: Mapping[str, Any]
    by_policy: Mapping[str, float] = field(default_factory=dict)
    custom_metrics: dict[str, float] = field(default_factory=dict)


class Callbacks:
    """An object of the user's class, or nobody who is told.

    Args:
        reference: "package.module:Class"; methods that it hasn't aren't called.

    Raises:
        InvalidManifest: there is no such class, or one of its methods would never be called.
        CallbackFailed: it can't be made.
    """

    def __init__(self, reference: str | None) -> None:
        self._reference = reference
        self._object: object | None = None
        if reference is None:
            return
        made = load(reference, FIELD, "Class")
        if not isinstance(made, type):
            raise InvalidManifest([Problem(FIELD, f"{reference!r} is not a class")])
        unknown = [name for name in dir(made) if (name.startswith("on_") and name not in _HOOKS) or name in _ELSEWHERE]
        if unknown:
            hint = f"the methods that are called are {' and '.join(_HOOKS)}"
            if unknown[0] in _ELSEWHERE:
                hint = "train batches are handed to the function that config.before_learn_on_batch names"
            raise InvalidManifest([Problem(FIELD, f"{unknown[0]} of {reference!r} would never be called", hint)])
        self._object = self._guarded("its constructor", made)

    def on_episode_end(self, episode: Episode) -> dict[str, float]:
        """Called where the episode was sampled; returns its custom metrics. Raises CallbackFailed."""
        self._call(ON_EPISODE_END, episode)
        for name, value in episode.custom_metrics.items():
            if not (isinstance(name, str) and isinstance(value, Real) and finite(float(value)) is not None):
                raise self._failed(ON_EPISODE_END, f"custom metric {name!r} must be a finite number, not {value!r}")
        return {name: float(value) for name, value in episode.custom_metrics.items()}

    def on_train_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """Called in the driver with a report; returns what was added to it. Raises CallbackFailed."""
        if not self._has(ON_TRAIN_RESULT):
            return {}
        given = json.dumps(result, sort_keys=True, default=repr)
        before = tuple(result)
        self._call(ON_TRAIN_RESULT, result)
        added = {name: value for name, value in result.items() if name not in before}
        kept = {name: result.get(name) for name in before}
        if json.dumps(kept, sort_keys=True, default=repr) != given:
            raise self._failed(ON_TRAIN_RESULT, "a report's own values must stay: give what you add names of its own")
        try:
            plain: dict[str, Any] = json.loads(json.dumps(finite(added)))
        except (TypeError, ValueError) as error:
            raise self._failed(ON_TRAIN_RESULT, f"a report can hold numbers, text and such: {error}") from error
        return plain

    def _has(self, name: str) -> bool:
        return getattr(self._object, name, None) is not None

    def _call(self, name: str, argument: object) -> None:
        if self._has(name):
            self._guarded(name, lambda: getattr(self._object, name)(argument))

    def _guarded(self, name: str, call: Any) -> Any:
        try:
            return call()
        except (Exception, SystemExit) as error:
            raise self._failed(name, f"{type(error).__name__}: {error}") from error

    def _failed(self, name: str, cause: str) -> CallbackFailed:
        return CallbackFailed(f"{FIELD} {self._reference!r}: {name} failed: {cause}")

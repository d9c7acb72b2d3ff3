"""Environments that show what happens in them."""

import os
from collections.abc import Callable
from typing import Any, Final

import gymnasium
import numpy as np

from rltrain.api.env import EnvSpec
from rltrain.api.errors import EnvironmentFailed, InvalidInput, RltrainError
from rltrain.rollout.environments import make_env
from rltrain.rollout.parallel_envs import is_multi_agent, make_parallel_env
from rltrain.state import Array

_MODE: Final = "rgb_array"
_FPS: Final = 30.0

Show = Callable[[Array], None]
"""Gets each frame, uint8 (height, width, 3), in order."""


class Filmed(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Shows the frames of episodes: of their beginning, and after each step."""

    def __init__(self, spec: EnvSpec, show: Show) -> None:
        super().__init__(make_env(spec))
        self._show = show
        self._begun = False

    def reset(self, **options: Any) -> Any:
        self._begun = True
        return self.env.reset(**options)

    def step(self, action: Any) -> Any:
        if self._begun:  # not with the reset: whoever plays may begin again without having stepped
            self._begun = False
            self._show(frame_of(self.env))
        result = self.env.step(action)
        self._show(frame_of(self.env))
        return result


def filmed(env: EnvSpec, show: Show) -> EnvSpec:
    """The same environment, as it is evaluated in, with its frames shown."""
    together = f"{__name__}_together:FilmedTogether"
    kind = together if is_multi_agent(env) else f"{__name__}:{Filmed.__name__}"
    return EnvSpec.model_construct(id=kind, kwargs={"spec": _rendering(env), "show": show})


def frames_a_second(env: EnvSpec) -> float:
    """Of an environment's films, as it says itself.

    Raises:
        InvalidInput: it can't be filmed.
    """
    # What draws with SDL, as pygame does, complains where there is no screen.
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
    try:
        made = (make_parallel_env if is_multi_agent(env) else make_env)(_rendering(env))
    except RltrainError as error:
        raise InvalidInput(
            f"environment {env.id!r} can't be filmed, it takes no render_mode {_MODE!r}: {error}"
        ) from error
    try:
        made.reset(seed=0)
        frame_of(made)
        return float(made.metadata.get("render_fps") or _FPS)
    except (Exception, SystemExit) as error:
        raise InvalidInput(f"environment {env.id!r} can't be filmed: {str(error) or type(error).__name__}") from error
    finally:
        made.close()


def frame_of(env: Any) -> Array:
    """What an environment of either kind looks like now, uint8 (height, width, 3). Raises EnvironmentFailed."""
    frame = env.render()
    if not isinstance(frame, np.ndarray) or frame.ndim != 3 or frame.shape[2] != 3 or frame.dtype != np.uint8:
        raise EnvironmentFailed(f"render() gives no image in render_mode {_MODE!r} but {type(frame).__name__}")
    return frame


def _rendering(env: EnvSpec) -> EnvSpec:
    scored = env.scored()
    return scored.model_copy(update={"kwargs": {**scored.kwargs, "render_mode": _MODE}})

"""Atari games as agents see them: frames skipped, shrunk to gray and stacked (Mnih et al. 2015)."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import VectorizeMode
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation, TransformReward

from rltrain.api.env import AtariSpec, EnvSpec
from rltrain.api.errors import MissingExtra, UnknownEnvironment
from rltrain.state import Array

NAMESPACE = "ALE/"


def register_games() -> None:
    """Let gymnasium know the games.

    Raises:
        MissingExtra: what they need isn't installed.
    """
    try:
        import ale_py
        import cv2  # noqa: F401 - of AtariPreprocessing
    except ImportError as error:
        raise MissingExtra(f"Atari games need {error.name}: pip install 'rltrain[atari]'") from error
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)  # it greets with each game
    if f"{NAMESPACE}Pong-v5" not in gymnasium.registry:
        gymnasium.register_envs(ale_py)


def check_game(env_id: str) -> None:
    """Raises UnknownEnvironment where an id is none of a game."""
    registered = gymnasium.registry.get(env_id)
    if registered is not None and not str(registered.entry_point).startswith("ale_py"):
        raise UnknownEnvironment(f"env.atari prepares Atari games such as ALE/Pong-v5; {env_id!r} is none")


def prepare(game: gymnasium.Env[Any, Any], spec: AtariSpec) -> gymnasium.Env[Any, Any]:
    """A game that skips no frames by itself -> uint8 observations (height, width, frames)."""
    seen = AtariPreprocessing(
        game,
        noop_max=spec.noop_max,
        frame_skip=spec.frame_skip,
        screen_size=spec.screen_size,
        terminal_on_life_loss=spec.terminal_on_life_loss,
    )
    # Zeros before an episode's first frame, as the vector has them.
    images = _ChannelsLast(FrameStackObservation(seen, spec.frame_stack, padding_type="zero"))
    return TransformReward(images, lambda reward: float(np.sign(float(reward)))) if spec.clip_rewards else images


def make_vector(spec: EnvSpec, num_envs: int) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
    """The games' own vector, which plays in threads: what it gives is what `prepare` gives."""
    atari = spec.atari
    assert atari is not None
    envs = gymnasium.make_vec(
        spec.id,
        num_envs=num_envs,
        vectorization_mode=VectorizeMode.VECTOR_ENTRY_POINT,
        img_height=atari.screen_size,
        img_width=atari.screen_size,
        frameskip=atari.frame_skip,
        stack_num=atari.frame_stack,
        noop_max=atari.noop_max,
        episodic_life=atari.terminal_on_life_loss,
        reward_clipping=atari.clip_rewards,
        use_fire_reset=False,
        **spec.kwargs,
    )
    return _ChannelsLastVector(envs)


def _channels_last(space: spaces.Box) -> spaces.Box:
    frames, height, width = space.shape
    return spaces.Box(0, 255, (height, width, frames), np.uint8)


class _ChannelsLast(gymnasium.ObservationWrapper[Array, Any, Array]):
    """Frames become channels, of which networks want them last."""

    def __init__(self, env: gymnasium.Env[Array, Any]) -> None:
        super().__init__(env)
        assert isinstance(env.observation_space, spaces.Box)
        self.observation_space = _channels_last(env.observation_space)

    def observation(self, observation: Array) -> Array:
        return np.moveaxis(observation, 0, -1)


class _ChannelsLastVector(gymnasium.vector.VectorObservationWrapper):
    """The same of many games at once."""

    def __init__(self, env: gymnasium.vector.VectorEnv[Any, Any, Any]) -> None:
        super().__init__(env)
        assert isinstance(env.single_observation_space, spaces.Box)
        self.single_observation_space = _channels_last(env.single_observation_space)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, self.num_envs)

    def observations(self, observations: Array) -> Array:
        return np.moveaxis(observations, 1, -1)

"""The environment block of the manifest."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from rltrain.api.base import Model, NonNegativeInt, PositiveFloat, PositiveInt


class AtariSpec(Model):
    """How an Atari game is prepared: gray screens, several of them stacked, rewards clipped."""

    frame_skip: PositiveInt = 4
    """Frames that an action is repeated for; an observation has the larger pixels of the last two."""
    frame_stack: PositiveInt = 4
    """Latest observations that are given together."""
    screen_size: PositiveInt = 84
    """Pixels of an observation's height and width."""
    noop_max: NonNegativeInt = 30
    """Most idle frames that an episode begins with."""
    terminal_on_life_loss: bool = False
    """End an episode with each life that is lost, while training."""
    clip_rewards: bool = True
    """Give a reward's sign alone, while training."""


class EnvSpec(Model):
    """The environment to learn in."""

    id: Annotated[str, Field(examples=["CartPole-v1"])]
    """A gymnasium id (`CartPole-v1`), a class (`"package.module:Class"`), or one of envpool (`envpool:CartPole-v1`)."""
    kwargs: dict[str, Any] = {}
    """Arguments of the environment's constructor."""
    imports: list[str] = []
    """Modules imported first in every process, for ids that they register."""
    atari: AtariSpec | None = None
    """Prepares an Atari game, `{}` in the usual way."""
    vectorize: Literal["Auto", "Sequential", "Native", "Subprocess"] = "Auto"
    """How a worker steps its environments: one by one, as the vector that the environment brings along, or each in a
    process of its own; Auto takes processes where steps have a limit, else a vector from 8 on where there is one."""
    step_timeout_seconds: PositiveFloat | None = None
    """Longest that a step or a reset may take; the environment is then ended, with its process, and made again."""
    max_restarts: NonNegativeInt = 10
    """How often environments of one worker may fail, and be made again, within `restartWindowSteps`."""
    restart_window_steps: PositiveInt = 10_000
    """Steps of one worker."""

    @model_validator(mode="after")
    def _only_processes_can_be_ended(self) -> Self:
        if self.step_timeout_seconds is not None and self.vectorize not in ("Auto", "Subprocess"):
            raise ValueError(
                f"stepTimeoutSeconds needs environments in processes, which can be ended: vectorize Subprocess rather "
                f"than {self.vectorize}"
            )
        return self

    @property
    def apart(self) -> bool:
        """Whether environments are sampled from in processes of their own."""
        return self.vectorize == "Subprocess" or self.step_timeout_seconds is not None

    def scored(self) -> "EnvSpec":
        """As evaluation plays it: to a game's end, for the game's own rewards."""
        if self.atari is None:
            return self
        atari = self.atari.model_copy(update={"terminal_on_life_loss": False, "clip_rewards": False})
        return self.model_copy(update={"atari": atari})

"""Which policy each agent of an environment has, and which of them learn."""

from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from rltrain.api.base import ConfigModel
from rltrain.api.nearest import did_you_mean

DEFAULT_POLICY: Final = "default_policy"
"""The policy that all agents share where nothing else is said; RLlib's name for it."""

_Name = Annotated[str, Field(min_length=1)]
_Names = Annotated[
    tuple[_Name, ...],
    Field(min_length=1),
    BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value),
]


class MultiAgentConfig(ConfigModel):
    """Policies of an environment with several agents (PettingZoo's parallel environments)."""

    policy_mapping: dict[str, _Name] = {}
    """Policy of each agent id, or of each pattern with `*`: the one with most other characters counts. By default all
    agents share `default_policy`."""
    policies_to_train: _Names | None = None
    """Policies that learn; the others stay as they are. All by default."""

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        known = sorted(set(self.policy_mapping.values())) or [DEFAULT_POLICY]
        for name in self.policies_to_train or ():
            if name not in known:
                near = did_you_mean(name, known) or f"; there are {', '.join(known)}"
                raise ValueError(f"policies_to_train has {name!r}, which policy_mapping gives to no agent{near}")
        return self


class ReplayMultiAgentConfig(MultiAgentConfig):
    """The same, for plans that learn from a replay buffer."""

    replay_mode: Literal["independent", "lockstep"] = "independent"
    """Each policy's train batch is drawn by itself, or all are of the same env steps."""

"""Keys that every plan has."""

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, WithJsonSchema

from rltrain.api.base import (
    ConfigModel,
    FiniteFloat,
    Fraction,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)
from rltrain.api.config.multi_agent import MultiAgentConfig


def _pairs_to_tuples(value: object) -> object:
    """JSON and YAML have lists where the models keep tuples."""
    if isinstance(value, list):
        return tuple(_pairs_to_tuples(item) for item in value)
    return value


def _zero_to_none(value: object) -> object:
    return None if isinstance(value, int | float) and not isinstance(value, bool) and value == 0 else value


GradClip = Annotated[
    PositiveFloat | None,
    BeforeValidator(_zero_to_none),
    PlainSerializer(lambda value: value or 0.0, return_type=float),
    WithJsonSchema({"type": "number", "minimum": 0}),
]
"""A norm; None is written as 0 in manifests, because `kubectl apply` drops every null."""


def _forward_in_time(points: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
    if not points:
        raise ValueError("a schedule needs at least one point [env_steps, value]")
    for (earlier, _), (later, _) in pairwise(points):
        if later <= earlier:
            raise ValueError(f"a schedule's points must rise in env_steps, but {later:g} follows {earlier:g}")
    return points


Schedule = Annotated[
    tuple[Annotated[tuple[FiniteFloat, FiniteFloat], Field(strict=False)], ...],
    BeforeValidator(_pairs_to_tuples),
    AfterValidator(_forward_in_time),
]
"""Points ``[env_steps, value]``, linear between them and constant after the last."""
Widths = Annotated[tuple[PositiveInt, ...], BeforeValidator(_pairs_to_tuples)]
"""Widths of hidden layers."""


def _square_kernels(value: object) -> object:
    """RLlib writes kernels as ``[height, width]``; square ones have one number here."""
    if not isinstance(value, list | tuple):
        return value
    layers = [list(layer) if isinstance(layer, list | tuple) else layer for layer in value]
    for layer in layers:
        kernel = layer[1] if isinstance(layer, list) and len(layer) > 1 else None
        if isinstance(kernel, list | tuple) and len(kernel) == 2:
            if kernel[0] != kernel[1]:
                raise ValueError(f"kernels must be square, {list(kernel)} isn't")
            layer[1] = kernel[0]
    return _pairs_to_tuples(layers)


ConvFilters = Annotated[
    tuple[tuple[PositiveInt, PositiveInt, PositiveInt], ...],
    BeforeValidator(_square_kernels),
    WithJsonSchema({"type": "array", "items": {"type": "array", "items": {}}}),
]
"""Convolutions as ``[channels, kernel, stride]``."""


class ModelConfig(ConfigModel):
    """The network between observation and heads."""

    conv_filters: ConvFilters | None = None
    """Convolutions over images, each [channels, kernel, stride]; null: chosen by the image's size; []: none."""
    fcnet_hiddens: Widths = (256, 256)
    """Widths of the fully connected hidden layers."""
    fcnet_activation: Literal["tanh", "relu"] = "tanh"
    """Activation after each of them."""


class PlanConfig(ConfigModel):
    """What all plans share. Steps are environment transitions, times are seconds."""

    gamma: Fraction = 0.99
    """Discount factor."""
    lr: PositiveFloat
    """Adam's learning rate."""
    lr_schedule: Schedule | None = None
    """Learning rate over global env steps; replaces `lr`."""
    grad_clip: GradClip
    """Largest global norm of a gradient; 0 leaves it alone."""
    timesteps_per_iteration: PositiveInt
    """Least env steps between two reports; trained steps where nothing is sampled."""
    min_time_s_per_reporting: NonNegativeFloat
    """Least seconds between two reports."""
    metrics_num_episodes_for_smoothing: PositiveInt = 100
    """Episodes in the window of `episode_return_mean`."""
    evaluation_interval: NonNegativeInt = 0
    """Reports between the beginnings of two evaluations; 0: none."""
    evaluation_num_episodes: PositiveInt = 10
    """Episodes of an evaluation, played greedily with seeds that training doesn't have."""
    evaluation_num_workers: NonNegativeInt = 0
    """Processes beside the driver that evaluate while training goes on; 0: the driver evaluates between two reports."""
    callbacks: str | None = None
    """`"package.module:Class"` with methods `on_episode_end` and `on_train_result`, either of them or both."""
    multiagent: MultiAgentConfig | None = None
    """Policies of an environment with several agents; only for one."""
    model: ModelConfig = ModelConfig()
    """The network."""
    compile: Literal["Auto", "Always", "Never"] = "Auto"
    """Updates and actions as native code, several times as fast, on CPUs: made in the background once it pays and kept
    for later runs; or waited for before the first step. Serial runs are compiled with Always alone."""


class SamplingConfig(PlanConfig):
    """What all plans share whose workers sample."""

    rollout_fragment_length: PositiveInt
    """Steps that each environment contributes to a sample."""
    num_envs_per_worker: PositiveInt
    """Environments stepped as one vector by each worker."""

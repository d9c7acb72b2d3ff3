"""Native code for policies."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any, Final

from rltrain.api.config import PlanConfig
from rltrain.compiled.library import Library
from rltrain.compiled.store import sources
from rltrain.models.spaces import Space
from rltrain.policies.base import Learned
from rltrain.policies.group import PolicyGroup
from rltrain.policies.registry import for_each_policy, make_policy
from rltrain.policies.torch_policy import TorchPolicy

_WRITTEN_IN: Final = ("rltrain.models.", "rltrain.policies.")
_NOT_TRACED: Final = frozenset(
    {
        "_fake_gpus",
        "bc_iters",
        "before_learn_on_batch",
        "buffer_size",
        "callbacks",
        "compile",
        "entropy_coeff",
        "entropy_coeff_schedule",
        "evaluation_interval",
        "evaluation_num_episodes",
        "evaluation_num_workers",
        "exploration_config",
        "input",
        "keep_local_weights_in_sync",
        "learning_starts",
        "lr",
        "lr_schedule",
        "multiagent",
        "metrics_num_episodes_for_smoothing",
        "min_time_s_per_reporting",
        "num_envs_per_worker",
        "num_sgd_iter",
        "prioritized_replay",
        "prioritized_replay_alpha",
        "prioritized_replay_beta",
        "prioritized_replay_eps",
        "rollout_fragment_length",
        "sgd_minibatch_size",
        "simple_optimizer",
        "target_network_update_freq",
        "tau",
        "timesteps_per_iteration",
        "train_batch_size",
        "training_intensity",
    }
)
"""Keys that no policy's functions depend on, so that runs which differ in them alone share their code."""


def use_native_code(
    policy: Learned[Any], plan: str, config: PlanConfig, obs_space: Space, action_space: Space, *, serial: bool
) -> None:
    """Have the policy's functions run natively, as the config says.

    Args:
        serial: nothing may depend on when code is ready, so only what is waited for is used.

    Raises (when the policy is used):
        TrainingFailed: native code is always wanted, and can't be made.
    """
    if isinstance(policy, PolicyGroup):
        roster = policy.roster
        for name, each in policy.policies.items():
            spaces = roster.obs_spaces[name], roster.action_spaces[name]
            use_native_code(each, plan, for_each_policy(config), *spaces, serial=serial)
        return
    wanted = config.compile == "Always" or (config.compile == "Auto" and not serial)
    if wanted and isinstance(policy, TorchPolicy) and policy.device.type == "cpu":
        make = partial(make_policy, plan, config, obs_space, action_space, seed=0)
        keys = config.model_dump(mode="json", by_alias=True)
        options = {key: value for key, value in keys.items() if key not in _NOT_TRACED}
        recipe = json.dumps([plan, options, str(obs_space), str(action_space), _code_of(type(policy))], sort_keys=True)
        policy.compile_with(Library(make, recipe, always=config.compile == "Always"))


def _code_of(policy: type[TorchPolicy]) -> str:
    """Digest of what a policy's functions are written in, so that changed code isn't taken for the old."""
    found: set[str] = set()
    waiting = [each.__module__ for each in policy.__mro__]
    while waiting:
        name = waiting.pop()
        if name.startswith(_WRITTEN_IN) and name not in found:
            found.add(name)
            waiting += [getattr(value, "__module__", None) or "" for value in vars(sys.modules[name]).values()]
    return sources(*(Path(sys.modules[name].__file__ or "") for name in sorted(found)))

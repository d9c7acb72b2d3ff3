"""What can be refused before a run directory is made and Ray is started."""

from rltrain.api.config import ReplayConfig
from rltrain.api.job import RLTrainingJob
from rltrain.callbacks import Callbacks
from rltrain.ops import BeforeLearnOnBatch
from rltrain.plans.own import plan_of
from rltrain.policies.registry import check_spaces
from rltrain.rollout.parallel_envs import spaces_of


def check_users_code(job: RLTrainingJob) -> None:
    """Load what the manifest names. Raises InvalidManifest, CallbackFailed."""
    plan_of(job.spec)
    config = job.spec.config
    Callbacks(config.callbacks)
    BeforeLearnOnBatch(config.before_learn_on_batch if isinstance(config, ReplayConfig) else None)


def check_environment(job: RLTrainingJob) -> None:
    """Make the environment once and look at its spaces.

    Raises:
        UnknownEnvironment, EnvironmentFailed: it can't be made.
        UnsupportedSpace, InvalidManifest: the plan's policy can't handle its spaces, or its agents.
    """
    check_spaces(job.spec.base, job.spec.config, *spaces_of(job.spec.env))

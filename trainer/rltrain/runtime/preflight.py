"""What can be refused before a run directory is made and Ray is started."""

from rltrain.api.job import RLTrainingJob
from rltrain.policies.registry import check_spaces
from rltrain.rollout.environments import make_env


def check_environment(job: RLTrainingJob) -> None:
    """Make the environment once and look at its spaces.

    Raises:
        UnknownEnvironment, EnvironmentFailed: it can't be made.
        UnsupportedSpace: the plan's policy can't handle its spaces.
    """
    env = make_env(job.spec.env)
    try:
        check_spaces(job.spec.plan, job.spec.config, env.observation_space, env.action_space)
    finally:
        env.close()

"""What a manifest may well say, but its author will hardly have meant. Pure."""

from rltrain.api import names
from rltrain.api.budget import shortages
from rltrain.api.config import ApexConfig, CQLConfig
from rltrain.api.job import RLTrainingJob
from rltrain.api.roles import RolloutsRole


def doubts(job: RLTrainingJob, cores: int | None = None) -> list[str]:
    """Sentences to warn with.

    Args:
        cores: processors that all workers share, on one machine; None on a cluster.
    """
    config, stop = job.spec.config, job.spec.stop
    found: list[str] = []
    if cores is not None and job.spec.suspend:
        found.append("spec.suspend is for a cluster: on one machine the run begins all the same")
    others = (stop.trained_steps, stop.time_seconds, stop.evaluation_return_mean)
    if isinstance(config, CQLConfig) and stop.env_steps is not None and all(other is None for other in others):
        found.append("stop.envSteps is never reached, for CQL samples nothing: set stop.trainedSteps")
    found += shortages(job)
    first = config.evaluation_interval * config.timesteps_per_iteration
    if stop.env_steps is not None and first > stop.env_steps and not isinstance(config, CQLConfig):
        found.append(
            f"nothing will be evaluated: the first evaluation, after {first:,} steps (config.evaluation_interval x "
            f"config.timesteps_per_iteration), comes after stop.envSteps ({stop.env_steps:,})"
        )
    name = names.WORKERS if job.spec.base == "DDPPO" else names.ROLLOUTS
    role = getattr(job.spec, name, None)
    wanted = getattr(role, "replicas", 0)
    if cores is not None and isinstance(role, RolloutsRole) and role.autoscale:
        found.append(f"rollouts.autoscale is for a cluster: on one machine the run keeps {wanted} workers")
    if cores is not None and wanted > 2 * cores:
        found.append(f"{wanted} workers will share {cores} processors: lower {name}.replicas")
    pods = getattr(getattr(job.spec, names.REPLAY, None), "replicas", 0)
    if isinstance(config, ApexConfig) and pods > config.optimizer.num_replay_buffer_shards:
        found.append(
            f"{pods - config.optimizer.num_replay_buffer_shards} of {pods} replay pods will hold no shard: lower "
            "replay.replicas, or raise config.optimizer.num_replay_buffer_shards"
        )
    return found

"""Which machines a job's actors take."""

from typing import Final

from rltrain.api import names
from rltrain.api.config import PlanConfig, ReplayConfig
from rltrain.api.job import RLTrainingJob
from rltrain.api.roles import Role, WorkersRole
from rltrain.plans.registry import PLANS

GPU: Final = "nvidia.com/gpu"


def roles_of(job: RLTrainingJob) -> dict[names.RoleName, Role]:
    """The blocks of the roles that the plan's actors take, its workers' first."""
    return {name: getattr(job.spec, name) for name in PLANS[job.spec.base].roles}


def workers_role(job: RLTrainingJob) -> Role | None:
    """The block of the role that the plan's workers take; None where the plan has none."""
    return next(iter(roles_of(job).values()), None)


def replicas_of(role: Role | None) -> int:
    """Machines of a role, each with a slot for one actor."""
    return int(getattr(role, "replicas", 0))


def gpus_of(role: Role | None) -> int:
    """GPUs of each of a role's machines."""
    if role is None:
        return 0
    wants_nccl = isinstance(role, WorkersRole) and role.collective.backend == "NCCL"
    return int(role.resources.limits.get(GPU, 1 if wants_nccl else 0))


def learner_devices(role: Role | None, config: PlanConfig, *, elsewhere: bool = False) -> tuple[str, ...]:
    """Torch devices of a learner on a machine of a role: all of its GPUs, unless the config says otherwise.

    Args:
        elsewhere: the machine isn't this one; Ray sees to it that the GPUs are there.
    """
    import torch

    replay = config if isinstance(config, ReplayConfig) else None
    gpus = gpus_of(role)
    if replay is None or replay.simple_optimizer:
        gpus = min(gpus, 1)
    if replay is not None and replay.fake_gpus:
        return ("cpu",) * max(gpus, 1)
    if not elsewhere:
        gpus = min(gpus, torch.cuda.device_count())
    return tuple(f"cuda:{index}" for index in range(gpus)) or ("cpu",)


def gpus_by_role(job: RLTrainingJob) -> dict[str, float]:
    """GPUs of each of the job's actors, by role."""
    config = job.spec.config
    fake = isinstance(config, ReplayConfig) and config.fake_gpus
    return {name: 0 if fake else gpus_of(role) for name, role in roles_of(job).items()}


def slots_of(job: RLTrainingJob) -> int:
    """Slots that the job's actors need on a machine that holds all of them; shards need none."""
    return sum(replicas_of(role) for name, role in roles_of(job).items() if name != names.REPLAY)


def has_actors(job: RLTrainingJob) -> bool:
    """Whether anything of the job lives outside of the driver."""
    config = job.spec.config
    evaluators = config.evaluation_num_workers if config.evaluation_interval else 0
    return slots_of(job) > 0 or evaluators > 0 or PLANS[job.spec.base].sharded

"""What Ape-X's plans have beside workers: replay shards and a learner, each where the manifest says."""

from functools import partial
from typing import Final

from rltrain.api import names
from rltrain.api.config import ApexClassicConfig
from rltrain.api.job import RLTrainingJob
from rltrain.flow import Backend
from rltrain.models.agents import Roster
from rltrain.rollout.worker import RolloutWorker
from rltrain.runtime.connect import connection
from rltrain.runtime.crew import Crew
from rltrain.runtime.learner import MakeLearner, QueuedLearner
from rltrain.runtime.learner_actors import LearnerActors
from rltrain.runtime.roles import learner_devices, replicas_of, roles_of
from rltrain.runtime.shards import MakeShard, ShardActors

COLLECTIVE_SECONDS: Final = 600
"""Longest that learners wait for one another; one that is lost is noticed long before."""


def make_shards(job: RLTrainingJob, backend: Backend, roster: Roster | None) -> ShardActors:
    """Shards in the pods of the role `replay`, or beside the driver where there are none."""
    config = job.spec.config
    assert isinstance(config, ApexClassicConfig)
    role = names.REPLAY if replicas_of(roles_of(job).get(names.REPLAY)) else names.HEAD
    make = MakeShard(config, job.spec.seed, roster)
    return ShardActors(Crew(backend, role, make.count, make, noun="replay_shard", slotless=True), make)


def make_learner(job: RLTrainingJob, backend: Backend, local: RolloutWorker, devices: tuple[str, ...]) -> QueuedLearner:
    """A learner in the pods of the role `learners`, or as a thread of the driver, on `devices`, where there is none."""
    config = job.spec.config
    assert isinstance(config, ApexClassicConfig)
    role = roles_of(job).get(names.LEARNERS)
    learners = replicas_of(role)
    if learners:
        devices = learner_devices(role, config, elsewhere=True)
    make = MakeLearner(
        spec=local.spec,
        observation_space=local.observation_space,
        action_space=local.action_space,
        before_learn_on_batch=config.before_learn_on_batch,
        devices=devices,
        learners=max(learners, 1),
    )
    crew = Crew(backend, names.LEARNERS, learners, make, noun="learner") if learners else None
    connect = connection(backend, "gloo" if devices[0] == "cpu" else "nccl", COLLECTIVE_SECONDS)
    return QueuedLearner(partial(LearnerActors, backend, make, crew, connect))

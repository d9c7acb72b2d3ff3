"""From a manifest to a dataflow with its workers, in a given back end."""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal

from rltrain.api import names
from rltrain.api.errors import CheckpointUnusable
from rltrain.api.job import RLTrainingJob
from rltrain.api.resolve import resolved
from rltrain.api.roles import WorkersRole
from rltrain.flow import Backend, Future, LocalIterator, MetricsContext, ShardFailure
from rltrain.flow.metrics import EPISODES, STEPS_SAMPLED, STEPS_TRAINED
from rltrain.ops import ApexContext, PlanContext, Result
from rltrain.ops.ranks import Rank
from rltrain.plans.own import plan_of
from rltrain.plans.registry import Plan
from rltrain.replay.buffer import Buffer
from rltrain.rollout.worker import RolloutWorker, WorkerSpec
from rltrain.runtime.apex import make_learner, make_shards
from rltrain.runtime.checkpoint import Checkpoint, Identity, Summary
from rltrain.runtime.connect import connection
from rltrain.runtime.crew import Crew
from rltrain.runtime.evaluators import make_evaluators
from rltrain.runtime.learner import QueuedLearner
from rltrain.runtime.ranks import RankGroup
from rltrain.runtime.roles import gpus_of, learner_devices, replicas_of, roles_of, workers_role
from rltrain.runtime.shards import ShardActors, ShardPart
from rltrain.runtime.workers import RolloutWorkers
from rltrain.state import Array, State, content_hash

log = logging.getLogger(__name__)

_REPLAY: Final = "replay"
_NOT_LEARNED: Final = ("global_step", "rng", "torch_rng")
_INCARNATION_SEED: Final = 1_000_003


GIVE_WAY: Final = 10
"""Steps of niceness: of ten parts of a processor that is short, one is left to such a process."""


@dataclass(frozen=True)
class MakeWorker:
    """Makes a worker where its actor lives; a later incarnation draws other random numbers than the lost one.

    Attributes:
        nice: of the actor's process, which is this worker's alone, above that of others on the machine.
    """

    spec: WorkerSpec
    kind: type[RolloutWorker]
    nice: int = 0

    def __call__(self, index: int, incarnation: int) -> RolloutWorker:
        if self.nice:
            os.nice(self.nice)
        return self.kind(replace(self.spec, index=index, seed=self.spec.seed + _INCARNATION_SEED * incarnation))


class Training:
    """A plan's dataflow, its workers, and all of its state.

    Args:
        job: the manifest.
        backend: where actors live.
        metrics: the flow's context, active while this is used.

    Raises:
        UnknownEnvironment, EnvironmentFailed, UnsupportedSpace: before any actor is made.
        InvalidManifest: the user's own plan can't be loaded, or makes no flow of results.
    """

    def __init__(self, job: RLTrainingJob, backend: Backend, metrics: MetricsContext) -> None:
        spec = job.spec
        plan = plan_of(spec)
        role = workers_role(job)
        wanted = replicas_of(role)
        worker = WorkerSpec(
            plan=spec.base,
            env=spec.env,
            config=spec.config,
            seed=spec.seed,
            num_workers=wanted,
            serial=backend.serial,
        )
        self.job = job
        self.metrics = metrics
        devices = learner_devices(spec.head, spec.config)
        # Where the learner runs beside the driver, the driver's own policy only follows it.
        self.local = RolloutWorker(replace(worker, devices=("cpu",) if plan.sharded else devices))
        self.identity = Identity(
            plan=spec.plan,
            env=spec.env.id,
            observation_space=str(self.local.observation_space),
            action_space=str(self.local.action_space),
        )
        kind = Rank if plan.ranks else RolloutWorker
        # Where they sample beside the learner it must not wait for batches because they have its processor.
        nice = GIVE_WAY if plan.sharded and backend.parallel else 0
        make = MakeWorker(replace(worker, devices=("cuda",) if gpus_of(role) else ("cpu",)), kind, nice)
        crew = Crew(backend, next(iter(roles_of(job)), names.HEAD), wanted, make)
        self.workers = self._gather(plan, crew)
        self.evaluators = make_evaluators(job, backend, replace(worker, devices=devices[:1]))
        roster = self.local.roster
        self.shards: ShardActors | None = None
        self.learner: QueuedLearner | None = None
        self.context: PlanContext[Any]
        if plan.sharded:
            shards, learner = make_shards(job, backend, roster), make_learner(job, backend, self.local, devices)
            self.shards, self.learner = shards, learner
            self.context = ApexContext(spec.config, self.workers, spec.seed, roster, shards=shards, learner=learner)
            self.context.keep("learner", learner)
            for index in range(1, shards.wanted + 1):
                self.context.keep(f"{_REPLAY}_{index}", shards.part(index))
        else:
            self.context = PlanContext(spec.config, self.workers, spec.seed, roster)
        if plan.replay is not None:
            self.context.replay = self.context.keep(_REPLAY, plan.replay(spec.config, spec.seed, roster))
        self.flow: LocalIterator[Result] = plan.build(self.context)

    def resize(self, job: RLTrainingJob) -> None:
        """Go on with as many workers as a job says that differs in that alone. Raises RltrainError, see `RankGroup`."""
        self.job = job
        role = workers_role(job)
        if isinstance(self.workers, RankGroup):
            assert isinstance(role, WorkersRole)
            self.workers.resize(role.replicas, role.min_replicas)
        else:
            self.workers.resize(replicas_of(role))

    def get_state(self) -> dict[str, State]:
        """Everything that a resume needs, by part."""
        parts = {name: part.get_state() for name, part in self.context.kept.items() if self._saves(part)}
        return {**parts, "workers": self.workers.get_state(), "metrics": self.metrics.get_state()}

    def set_state(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint. Raises CheckpointUnusable, CheckpointMismatch."""
        unwanted = self.unwanted_in(checkpoint)
        for name, part in self.context.kept.items():
            state = None if name in unwanted else checkpoint.read(name)
            if state is not None:
                part.set_state(state)
        workers, metrics = checkpoint.read("workers"), checkpoint.read("metrics")
        if workers is None or metrics is None:
            raise CheckpointUnusable(f"{checkpoint.path} has no workers or no metrics in it")
        self.metrics.set_state(metrics)
        self.workers.set_state(workers)

    def newest_weights(self) -> dict[str, Array] | None:
        """Those of the policy that learns; None where it is being made again just now."""
        return self.workers.newest_weights() if self.learner is None else self.learner.weights()

    def missing_from(self, checkpoint: Checkpoint) -> Sequence[str]:
        """Parts that this run has and a checkpoint hasn't."""
        return [name for name in self.context.kept if name not in checkpoint.parts]

    def unwanted_in(self, checkpoint: Checkpoint) -> Sequence[str]:
        """Parts that a checkpoint has and this run doesn't save, and so doesn't go on from either."""
        return [name for name, part in self.context.kept.items() if name in checkpoint.parts and not self._saves(part)]

    def hashes(self, parts: Mapping[str, State]) -> dict[str, Any]:
        """What a resumed run must have in common with a checkpoint, from the parts of either."""
        return {**hashes(parts), "epsilon": self.local.policy.exploration_state().get("epsilon")}

    def pending(self) -> Sequence[Future]:
        """One for each actor that is being made, of whatever kind."""
        groups = [self.workers, *([self.shards] if self.shards else ()), *([self.learner] if self.learner else ())]
        return [future for group in groups for future in group.pending()]

    def refresh(self) -> None:
        """Take in actors that have become ready since, of whatever kind."""
        self.workers.refresh()
        if self.shards is not None:
            self.shards.refresh()
        if self.learner is not None:
            self.learner.refresh()

    def complete(self) -> bool:
        """Whether what there must be one of, beside workers, is there."""
        others = [*(self.shards.pending() if self.shards else ()), *(self.learner.pending() if self.learner else ())]
        return not others

    def failed(self, failure: ShardFailure) -> None:
        """An actor's call brought no result; it is made again, or RltrainError raised where that is hopeless."""
        if self.shards is not None and self.shards.owns(failure.actor):
            self.shards.failed([failure])
        elif self.learner is not None and self.learner.owns(failure.actor):
            self.learner.failed([failure])
        else:
            self.workers.failed([failure])

    def saved(self, checkpoint: Checkpoint) -> None:
        """There is a newer checkpoint, from which a lost part is restored."""
        if self.shards is not None:
            self.shards.saved = partial(_saved_shard, checkpoint)

    def close(self) -> None:
        """End what runs in this process, or for it."""
        self.local.close()
        if self.learner is not None:
            self.learner.close()

    def summary(self, attempt: int, parts: Mapping[str, State]) -> Summary:
        """What stands in checkpoint.json beside these parts."""
        counters = self.metrics.counters
        return Summary(
            env_steps=counters[STEPS_SAMPLED],
            trained_steps=counters[STEPS_TRAINED],
            episodes=counters[EPISODES],
            episode_return_mean=self.metrics.episode_return_mean,
            time_s=self.metrics.clock(),
            attempt=attempt,
            hashes=self.hashes(parts),
            job=resolved(self.job),
        )

    def _saves(self, part: object) -> bool:
        return self.job.spec.checkpoint.replay or not isinstance(part, Buffer | ShardPart)

    def _gather(self, plan: Plan, crew: Crew) -> RolloutWorkers | RankGroup:
        if not plan.ranks:
            return RolloutWorkers(self.local, crew)
        role = workers_role(self.job)
        assert isinstance(role, WorkersRole)
        collective = role.collective
        kind: Literal["gloo", "nccl"] = "gloo" if collective.backend == "Gloo" else "nccl"
        connect = connection(crew.backend, kind, collective.timeout_seconds)
        return RankGroup(self.local, crew, role.min_replicas, connect)


def _saved_shard(checkpoint: Checkpoint, index: int) -> State | None:
    """A shard's state; one that can't be read is no reason to end training."""
    try:
        return checkpoint.read(f"{_REPLAY}_{index}")
    except CheckpointUnusable as error:
        log.warning("replay shard %d can't be restored: %s", index, error)
        return None


def hashes(parts: Mapping[str, State]) -> dict[str, Any]:
    """What a resumed run must have in common with a checkpoint, from the parts of either."""
    workers = parts["workers"]
    own: State = workers["local"]["policy"]
    policy = parts["learner"]["policy"] if "learner" in parts else workers.get("learned", own)
    learned = {name: value for name, value in policy.items() if name not in _NOT_LEARNED}
    optimizer = learned["optimizer"]
    each = {name: float(its["step"]) for name, its in optimizer.items()} if "step" not in optimizer else None
    step = float(optimizer["step"]) if each is None else each
    found: dict[str, Any] = {"optimizer_step": step, "policy": content_hash(learned)}
    for name, state in parts.items():
        if name.startswith(_REPLAY):
            found[name] = content_hash(_of_buffer(state, "columns", "cursor"))
            found[name.replace(_REPLAY, "priorities")] = content_hash(_of_buffer(state, "priorities"))
    return found


def _of_buffer(state: State, *parts: str) -> State:
    """Parts of a buffer's state, by policy where each has its own buffer."""
    if "policies" in state:
        return {policy: _of_buffer(of_policy, *parts) for policy, of_policy in state["policies"].items()}
    return {part: state[part] for part in parts}

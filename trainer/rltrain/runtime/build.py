"""From a manifest to a dataflow with its workers, in a given back end."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from rltrain.api.errors import CheckpointUnusable
from rltrain.api.job import RLTrainingJob
from rltrain.api.resolve import resolved
from rltrain.api.roles import Role, WorkersRole
from rltrain.flow import Actor, Backend, LocalIterator, MetricsContext
from rltrain.flow.metrics import EPISODES, STEPS_SAMPLED, STEPS_TRAINED
from rltrain.flow.serial import SerialBackend
from rltrain.ops import PlanContext, Result
from rltrain.ops.ranks import Rank
from rltrain.plans.registry import PLANS, Plan
from rltrain.replay.buffer import ReplayBuffer
from rltrain.rollout.worker import RolloutWorker, WorkerSpec
from rltrain.runtime.checkpoint import Checkpoint, Identity, Summary
from rltrain.runtime.crew import Crew
from rltrain.runtime.ranks import Connect, RankGroup
from rltrain.runtime.workers import RolloutWorkers
from rltrain.state import State, content_hash

_INCARNATION_SEED: Final = 1_000_003
GPU: Final = "nvidia.com/gpu"


@dataclass(frozen=True)
class MakeWorker:
    """Makes a worker where its actor lives; a later incarnation draws other random numbers than the lost one."""

    spec: WorkerSpec
    kind: type[RolloutWorker]

    def __call__(self, index: int, incarnation: int) -> RolloutWorker:
        return self.kind(replace(self.spec, index=index, seed=self.spec.seed + _INCARNATION_SEED * incarnation))


def role_of(job: RLTrainingJob) -> Role:
    """The block of the role whose machines the plan's actors take."""
    role: Role = getattr(job.spec, PLANS[job.spec.plan].role)
    return role


def replicas_of(job: RLTrainingJob) -> int:
    """Actors that the job asks for."""
    return int(getattr(role_of(job), "replicas", 0))


def gpus_of(role: Role) -> int:
    """GPUs of each of a role's machines."""
    wants_nccl = isinstance(role, WorkersRole) and role.collective.backend == "NCCL"
    return int(role.resources.limits.get(GPU, 1 if wants_nccl else 0))


class Training:
    """A plan's dataflow, its workers, and all of its state.

    Args:
        job: the manifest.
        backend: where actors live.
        metrics: the flow's context, active while this is used.

    Raises:
        UnknownEnvironment, EnvironmentFailed, UnsupportedSpace: before any actor is made.
    """

    def __init__(self, job: RLTrainingJob, backend: Backend, metrics: MetricsContext) -> None:
        spec = job.spec
        plan = PLANS[spec.plan]
        wanted = replicas_of(job)
        gpus = gpus_of(role_of(job))
        worker = WorkerSpec(
            plan=spec.plan,
            env=spec.env,
            config=spec.config,
            seed=spec.seed,
            num_workers=wanted,
            serial=backend.serial,
        )
        self.job = job
        self.metrics = metrics
        self.local = RolloutWorker(replace(worker, device=driver_device(spec.head)))
        self.identity = Identity(
            plan=spec.plan,
            env=spec.env.id,
            observation_space=str(self.local.observation_space),
            action_space=str(self.local.action_space),
        )
        make = MakeWorker(replace(worker, device="cuda" if gpus else "cpu"), Rank if plan.ranks else RolloutWorker)
        crew = Crew(backend, plan.role, wanted, make)
        self.workers = self._gather(plan, crew)
        self.context: PlanContext[Any] = PlanContext(spec.config, self.workers, spec.seed)
        if plan.replay is not None:
            self.context.replay = self.context.keep("replay", plan.replay(spec.config, spec.seed))
        self.flow: LocalIterator[Result] = plan.build(self.context)

    def get_state(self) -> dict[str, State]:
        """Everything that a resume needs, by part."""
        parts = {name: part.get_state() for name, part in self.context.kept.items() if self._saves(part)}
        return {**parts, "workers": self.workers.get_state(), "metrics": self.metrics.get_state()}

    def set_state(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint. Raises CheckpointUnusable, CheckpointMismatch."""
        for name, part in self.context.kept.items():
            state = checkpoint.read(name)
            if state is not None:
                part.set_state(state)
        workers, metrics = checkpoint.read("workers"), checkpoint.read("metrics")
        if workers is None or metrics is None:
            raise CheckpointUnusable(f"{checkpoint.path} has no workers or no metrics in it")
        self.metrics.set_state(metrics)
        self.workers.set_state(workers)

    def missing_from(self, checkpoint: Checkpoint) -> Sequence[str]:
        """Parts that this run has and a checkpoint hasn't."""
        return [name for name in self.context.kept if name not in checkpoint.parts]

    def hashes(self) -> dict[str, Any]:
        """What a resumed run must have in common with the checkpoint, computed from the objects as they are."""
        learned = self.workers.learned_state()
        hashes: dict[str, Any] = {
            "optimizer_step": float(learned["optimizer"]["step"]),
            "epsilon": self.local.policy.exploration_state().get("epsilon"),
            "policy": content_hash(learned),
        }
        for name, part in self.context.kept.items():
            if isinstance(part, ReplayBuffer) and self._saves(part):
                state = part.get_state()
                hashes[name] = content_hash({"columns": state["columns"], "cursor": state["cursor"]})
                hashes["priorities"] = content_hash({"priorities": state["priorities"]})
        return hashes

    def summary(self, attempt: int) -> Summary:
        """What stands in checkpoint.json."""
        counters = self.metrics.counters
        return Summary(
            env_steps=counters[STEPS_SAMPLED],
            trained_steps=counters[STEPS_TRAINED],
            episodes=counters[EPISODES],
            episode_return_mean=self.metrics.episode_return_mean,
            time_s=self.metrics.clock(),
            attempt=attempt,
            hashes=self.hashes(),
            job=resolved(self.job),
        )

    def _saves(self, part: object) -> bool:
        return self.job.spec.checkpoint.replay or not isinstance(part, ReplayBuffer)

    def _gather(self, plan: Plan, crew: Crew) -> RolloutWorkers | RankGroup:
        if not plan.ranks:
            return RolloutWorkers(self.local, crew)
        role = role_of(self.job)
        assert isinstance(role, WorkersRole)
        return RankGroup(self.local, crew, role.min_replicas, connection(crew.backend, role))


def connection(backend: Backend, role: WorkersRole) -> Connect:
    """How a back end's ranks are joined into a group."""
    if isinstance(backend, SerialBackend):
        return backend.join

    from rltrain.runtime import collective

    kind = role.collective.backend.lower()
    timeout = role.collective.timeout_seconds

    def connect(actors: Sequence[Actor]) -> None:
        place = backend.result(actors[0].apply(collective.open_store, timeout))
        futures = [
            actor.apply(collective.join, place, position, len(actors), kind, timeout)
            for position, actor in enumerate(actors)
        ]
        waiting = list(futures)
        while waiting:
            for future in backend.wait(waiting):
                waiting.remove(future)
                backend.result(future)

    return connect


def driver_device(head: Role) -> str:
    """The learner's device: a GPU where the head has one."""
    import torch

    return "cuda" if gpus_of(head) and torch.cuda.is_available() else "cpu"

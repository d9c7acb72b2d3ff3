"""RLTrainingJob: the manifest."""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from rltrain.api import names
from rltrain.api.base import Int, Model, NonNegativeInt, PositiveFloat, PositiveInt
from rltrain.api.config import (
    ApexClassicConfig,
    ApexConfig,
    CQLConfig,
    DDPPOConfig,
    DQNConfig,
    OffPolicyConfig,
    PlanConfig,
)
from rltrain.api.env import EnvSpec
from rltrain.api.references import EnvFromSource, LocalObjectReference
from rltrain.api.roles import ApexRolloutsRole, HeadRole, LearnersRole, ReplayRole, RolloutsRole, WorkersRole
from rltrain.api.run_policy import RunPolicy
from rltrain.api.scheduling import Scheduling
from rltrain.api.status import JobStatus
from rltrain.api.storage import Checkpoint, Code


class Stop(Model):
    """Training ends as soon as one of these is reached; at least one is needed."""

    episode_return_mean: float | None = None
    """Mean return of the smoothing window's episodes, once there are `config.metrics_num_episodes_for_smoothing`."""
    evaluation_return_mean: float | None = None
    """Mean return of an evaluation's episodes; needs `config.evaluation_interval`."""
    env_steps: PositiveInt | None = None
    """Environment steps, over all attempts."""
    trained_steps: PositiveInt | None = None
    """Transitions learnt from, over all attempts: an update has `train_batch_size` of them."""
    time_seconds: PositiveFloat | None = None
    """Seconds of training, over all attempts."""

    @model_validator(mode="after")
    def _some_criterion(self) -> Self:
        if all(value is None for _, value in self):
            raise ValueError(f"give at least one of {', '.join(STOP_CRITERIA)}")
        return self


STOP_CRITERIA: Final = tuple(str(field.alias) for field in Stop.model_fields.values())


PlanName = Literal["Apex", "ApexClassic", "CQL", "DDPPO", "DQN", "OffPolicy"]


class SpecBase(Model):
    """What every plan's spec has."""

    plan: Annotated[str, Field(max_length=200, examples=["DQN"])]
    """The execution plan: a built-in one, or one's own, `"package.module:function"`."""
    base_plan: PlanName | None = None
    """Of one's own plan, the built-in one whose config, roles and context it has."""
    env: EnvSpec
    """The environment."""
    stop: Annotated[Stop, Field(examples=["{envSteps: 100000}"])]
    """When training is done."""
    seed: NonNegativeInt = 0
    """Of networks, environments and sampling."""
    checkpoint: Checkpoint = Checkpoint()
    """When and where the state is saved."""
    image: str | None = None
    """Image of the job's pods; the operator's default when not given."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """As in a pod."""
    image_pull_secrets: list[LocalObjectReference] = []
    """As in a pod."""
    code: Code | None = None
    """The user's own modules."""
    service_account_name: str | None = None
    """Identity of the job's pods; one that may only report progress is made when not given."""
    env_from: list[EnvFromSource] = []
    """Environment variables of every pod of the job."""
    head: HeadRole = HeadRole()
    """The head pod."""
    run_policy: RunPolicy = RunPolicy()
    """Deadlines, restarts, and what is left in the end."""
    scheduling: Scheduling = Scheduling()
    """Queue, gang, priority and places of the job's pods."""
    update_strategy: Literal["OnResume", "Restart"] = "OnResume"
    """When an edit that running pods can't take holds: from the next resume on, or at once, by a restart of the job
    from a checkpoint."""
    suspend: bool = False
    """No pods: the driver saves a checkpoint, from which the job goes on, as edited meanwhile, once this is false."""

    @property
    def base(self) -> str:
        """The built-in plan that decides config, roles and context."""
        return self.base_plan or self.plan

    @model_validator(mode="after")
    def _is_evaluated_where_it_matters(self) -> Self:
        config: PlanConfig | None = getattr(self, "config", None)
        if config is not None and self.stop.evaluation_return_mean is not None and not config.evaluation_interval:
            raise ValueError(
                "stop.evaluationReturnMean needs evaluations: set config.evaluation_interval, such as to 10"
            )
        return self

    @model_validator(mode="after")
    def _is_scheduled_as_it_can_be(self) -> Self:
        rollouts: RolloutsRole | None = getattr(self, "rollouts", None)
        if self.scheduling.in_kueue and rollouts is not None and rollouts.autoscale:
            raise ValueError(
                "rollouts.autoscale isn't for a job in a queue, whose share is fixed once it is admitted: leave out "
                "scheduling.queueName or rollouts.autoscale"
            )
        if self.scheduling.gang == "Kubernetes" and rollouts is not None and rollouts.autoscale:
            raise ValueError(
                "rollouts.autoscale isn't for gang Kubernetes, whose size Kubernetes 1.36 fixes once there are pods: "
                "leave out scheduling.gang or rollouts.autoscale"
            )
        learners: LearnersRole | None = getattr(self, "learners", None)
        average = hasattr(self, "workers") or (learners is not None and learners.replicas > 1)
        if self.scheduling.topology is not None and not average:
            raise ValueError(
                "scheduling.topology is about pods that average gradients, DD-PPO's workers or learners.replicas of "
                "at least 2: place others with the role's template"
            )
        return self


def _default_config(value: Any) -> Any:
    return {} if value is None else value


class DQNSpec(SpecBase):
    """A job with the DQN plan."""

    config: Annotated[DQNConfig, BeforeValidator(_default_config)] = DQNConfig()
    """The plan's own options."""
    rollouts: RolloutsRole = RolloutsRole()
    """Rollout workers."""


class DDPPOSpec(SpecBase):
    """A job with the DD-PPO plan."""

    config: Annotated[DDPPOConfig, BeforeValidator(_default_config)] = DDPPOConfig()
    """The plan's own options."""
    workers: WorkersRole
    """The ranks: each samples and learns, and all average their gradients."""

    @model_validator(mode="after")
    def _minimum_within_replicas(self) -> Self:
        if self.workers.min_replicas > self.workers.replicas:
            raise ValueError(
                f"workers.minReplicas ({self.workers.min_replicas}) must not exceed "
                f"workers.replicas ({self.workers.replicas})"
            )
        return self


class ApexSpec(SpecBase):
    """A job with the Ape-X plan."""

    config: Annotated[ApexConfig, BeforeValidator(_default_config)] = ApexConfig()
    """The plan's own options."""
    rollouts: ApexRolloutsRole = ApexRolloutsRole()
    """Rollout workers."""
    replay: ReplayRole = ReplayRole()
    """Replay shards."""
    learners: LearnersRole = LearnersRole()
    """The learner, or learners."""

    @model_validator(mode="after")
    def _learner_can_lack_samples(self) -> Self:
        if self.rollouts.autoscale and self.config.training_intensity is None:
            raise ValueError(
                "rollouts.autoscale needs config.training_intensity: a learner that runs free never waits for samples"
            )
        return self

    @model_validator(mode="after")
    def _each_learner_has_rows(self) -> Self:
        if self.learners.replicas > self.config.train_batch_size:
            raise ValueError(
                f"learners.replicas ({self.learners.replicas}) must not exceed config.train_batch_size "
                f"({self.config.train_batch_size}), whose rows the learners share"
            )
        return self

    @model_validator(mode="after")
    def _shards_have_one_place(self) -> Self:
        colocated = self.config.replay_buffer_shards_colocated_with_driver
        if colocated is not None and colocated != (self.replay.replicas == 0):
            raise ValueError(
                f"config.replay_buffer_shards_colocated_with_driver is {str(colocated).lower()}, but replay.replicas "
                f"is {self.replay.replicas}: leave the former out; shards are in the head's pod unless they have pods"
            )
        return self


class ApexClassicSpec(SpecBase):
    """A job with the first Ape-X plan."""

    config: Annotated[ApexClassicConfig, BeforeValidator(_default_config)] = ApexClassicConfig()
    """The plan's own options."""
    rollouts: ApexRolloutsRole = ApexRolloutsRole()
    """Rollout workers."""

    @model_validator(mode="after")
    def _runs_free(self) -> Self:
        if self.rollouts.autoscale:
            raise ValueError("rollouts.autoscale isn't for ApexClassic, which always runs free: use plan Apex")
        if self.config.training_intensity is not None:
            raise ValueError(
                "config.training_intensity isn't for ApexClassic, which always runs free: leave it out or use plan Apex"
            )
        return self


class OffPolicySpec(SpecBase):
    """A job with the generic off-policy plan."""

    config: Annotated[OffPolicyConfig, BeforeValidator(_default_config)]
    """The options of the algorithm that its `policy` names."""
    rollouts: RolloutsRole = RolloutsRole()
    """Rollout workers."""


class CQLSpec(SpecBase):
    """A job with the CQL plan: it learns from a dataset, in the head."""

    config: Annotated[CQLConfig, BeforeValidator(_default_config)]
    """The plan's own options, with `input`, its dataset."""

    @model_validator(mode="after")
    def _stops_by_what_it_has(self) -> Self:
        if self.stop.episode_return_mean is not None:
            raise ValueError(
                "stop.episodeReturnMean isn't for CQL, which plays no episodes in training: use "
                "stop.evaluationReturnMean, with config.evaluation_interval"
            )
        if self.checkpoint.keep_best and not self.config.evaluation_interval:
            raise ValueError(
                "checkpoint.keepBest needs evaluations with CQL: set config.evaluation_interval, such as to 2"
            )
        return self


PlanSpec = ApexSpec | ApexClassicSpec | CQLSpec | DDPPOSpec | DQNSpec | OffPolicySpec
PLAN_SPECS: dict[str, type[PlanSpec]] = {
    "Apex": ApexSpec,
    "ApexClassic": ApexClassicSpec,
    "CQL": CQLSpec,
    "DDPPO": DDPPOSpec,
    "DQN": DQNSpec,
    "OffPolicy": OffPolicySpec,
}


def _tag(spec: Any) -> str | None:
    """Which of the specs it is, given as data or as a model."""
    if isinstance(spec, SpecBase):
        return spec.base
    given = (spec.get("plan"), spec.get("basePlan")) if isinstance(spec, dict) else ()
    return next((name for name in given if isinstance(name, str) and name in PLAN_SPECS), None)


JobSpec = Annotated[
    Annotated[ApexSpec, Tag("Apex")]
    | Annotated[ApexClassicSpec, Tag("ApexClassic")]
    | Annotated[CQLSpec, Tag("CQL")]
    | Annotated[DDPPOSpec, Tag("DDPPO")]
    | Annotated[DQNSpec, Tag("DQN")]
    | Annotated[OffPolicySpec, Tag("OffPolicy")],
    Discriminator(_tag),
]


class ObjectMeta(Model):
    """Metadata that users write, and what the API server adds to it."""

    name: Annotated[str, Field(max_length=names.MAX_JOB_NAME, pattern=names.JOB_NAME_PATTERN, examples=["cartpole"])]
    """At most 40 characters: a letter, then letters, digits and hyphens, all in lower case."""
    namespace: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    uid: str | None = None
    generation: Int | None = None
    resource_version: str | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: Int | None = None
    finalizers: list[str] = []
    owner_references: list[dict[str, Any]] = []
    managed_fields: list[dict[str, Any]] = []


class RLTrainingJob(Model):
    """One manifest: trains an agent with one execution plan, on a laptop or on a cluster."""

    api_version: Literal["rltrain.dev/v1alpha1"]
    kind: Literal["RLTrainingJob"]
    metadata: ObjectMeta
    spec: Annotated[JobSpec, Field(examples=["{plan: DQN, env: {id: CartPole-v1}, stop: {envSteps: 100000}}"])]
    """What to train and how."""
    status: JobStatus | None = None
    """What became of it."""

"""What a misspelt or misplaced key was probably meant to be."""

from collections.abc import Mapping
from typing import Final

from rltrain.api.fields import Section, policies_of, sections, variants, variants_of
from rltrain.api.job import PLAN_SPECS
from rltrain.api.nearest import nearest, normal, question

# Names of other libraries and of RLlib's keys that say here what a role block or another section says.
_ANY_PLAN: Final = {
    "learningrate": "spec.config.lr",
    "discount": "spec.config.gamma",
    "discountfactor": "spec.config.gamma",
    "maxgradnorm": "spec.config.grad_clip",
    "numenvs": "spec.config.num_envs_per_worker",
    "nenvs": "spec.config.num_envs_per_worker",
    "numenvsperenvrunner": "spec.config.num_envs_per_worker",
    "hiddensizes": "spec.config.model.fcnet_hiddens",
    "activation": "spec.config.model.fcnet_activation",
    "envconfig": "spec.env.kwargs",
    "envid": "spec.env.id",
    "episoderewardmean": "spec.stop.episodeReturnMean",
    "timestepstotal": "spec.stop.envSteps",
    "totaltimesteps": "spec.stop.envSteps",
    "numenvstepssampledlifetime": "spec.stop.envSteps",
    "timetotals": "spec.stop.timeSeconds",
    "checkpointfreq": "spec.checkpoint.everySeconds",
    "checkpointfrequency": "spec.checkpoint.everySeconds",
    "keepcheckpointsnum": "spec.checkpoint.keep",
    "evaluationduration": "spec.config.evaluation_num_episodes",
    "evaluationnumenvrunners": "spec.config.evaluation_num_workers",
}
_BUFFER: Final = {
    "batchsize": "spec.config.train_batch_size",
    "replaybuffersize": "spec.config.buffer_size",
    "buffercapacity": "spec.config.buffer_size",
    "targetupdateinterval": "spec.config.target_network_update_freq",
    "targetnetworkupdatefrequency": "spec.config.target_network_update_freq",
}
_ROLLOUTS: Final = {
    "numworkers": "spec.rollouts.replicas",
    "numrolloutworkers": "spec.rollouts.replicas",
    "numenvrunners": "spec.rollouts.replicas",
}
_SOFT: Final = {
    "qmodelconfig": "spec.config.model",
    "policymodelconfig": "spec.config.model",
    "entcoef": "spec.config.initial_alpha",
    "actorlr": "spec.config.lr",
    "criticlr": "spec.config.lr",
    "alphalr": "spec.config.lr",
}
_SEQUENCES: Final = {
    "replayburnin": "spec.config.burn_in",
    "replayzeroinitstates": "spec.config.zero_init_states",
    "lstmcellsize": "spec.config.model.lstm_cell_size",
    "hiddensize": "spec.config.model.lstm_cell_size",
    "maxseqlen": "spec.config.model.max_seq_len",
}
_SHARDS: Final = {
    "numshards": "spec.config.optimizer.num_replay_buffer_shards",
    "numreplaybuffershards": "spec.config.optimizer.num_replay_buffer_shards",
    "maxweightsyncdelay": "spec.config.optimizer.max_weight_sync_delay",
    "numlearners": "spec.learners.replicas",
    "numlearnerworkers": "spec.learners.replicas",
}
_BY_PLAN: Final[dict[str, dict[str, str]]] = {
    "DQN": {
        **_BUFFER,
        **_ROLLOUTS,
        "explorationfinaleps": "spec.config.exploration_config.final_epsilon",
    },
    "Apex": {**_BUFFER, **_ROLLOUTS, **_SHARDS},
    "ApexClassic": {**_BUFFER, **_ROLLOUTS, **_SHARDS},
    "OffPolicy": {**_BUFFER, **_ROLLOUTS, **_SOFT, **_SEQUENCES},
    "CQL": {
        **_BUFFER,
        **_SOFT,
        "dataset": "spec.config.input",
        "inputpath": "spec.config.input",
    },
    "DDPPO": {
        "batchsize": "spec.config.sgd_minibatch_size",
        "minibatchsize": "spec.config.sgd_minibatch_size",
        "numworkers": "spec.workers.replicas",
        "numrolloutworkers": "spec.workers.replicas",
        "numenvrunners": "spec.workers.replicas",
        "torchdistributedbackend": "spec.workers.collective.backend",
        "numepochs": "spec.config.num_sgd_iter",
        "nepochs": "spec.config.num_sgd_iter",
        "nsteps": "spec.config.rollout_fragment_length",
        "cliprange": "spec.config.clip_param",
        "gaelambda": "spec.config.lambda",
        "entcoef": "spec.config.entropy_coeff",
        "vfcoef": "spec.config.vf_loss_coeff",
    },
}
_GPUS: Final = "GPUs are given to a role's pods: resources: {limits: {nvidia.com/gpu: 1}} in its block"
_HEAD_REPLAY: Final = "this plan's replay buffer lives in the head: set spec.config.buffer_size"
_HEAD_LEARNS: Final = "this plan learns in the head: spec.head"
_PER_WORKER: Final = "leave it out: each worker's epsilon follows from its index"
_RECURRENT: Final = "leave it out: policy R2D2 always has a recurrent layer, model.recurrent says which"
_TWIN: Final = "leave it out: there are always two critics"
_EXPLAINED: Final = {
    "numgpus": _GPUS,
    "numgpusperworker": _GPUS,
    "numcpusperworker": "CPUs are given to a role's pods: resources: {requests: {cpu: 1}} in its block",
    "numcpusfordriver": "CPUs are given to the head's pod: spec.head.resources",
    "batchmode": "leave it out: fragments always have rollout_fragment_length steps, whatever the episodes do",
    "framework": "leave it out: it is always torch",
    "explore": "leave it out: rollouts always explore, rltrain evaluate never does",
    "kltarget": "leave it out: ranks that adapted a KL coefficient by themselves would drift apart",
}
_EXPLAINED_BY_PLAN: Final[dict[str, dict[str, str]]] = {
    "DDPPO": {
        "trainbatchsize": "leave it out: a rank's batch is rollout_fragment_length * num_envs_per_worker steps",
        "rollouts": "DDPPO's ranks sample by themselves: spec.workers",
    },
    "Apex": {"workers": "Apex's rollout workers are spec.rollouts", "perworkerexploration": _PER_WORKER},
    "ApexClassic": {
        "workers": "ApexClassic's rollout workers are spec.rollouts",
        "perworkerexploration": _PER_WORKER,
        "replay": "the first Ape-X has its shards in the head's pod; plan Apex has pods for them",
        "learners": "the first Ape-X learns in the driver; plan Apex has a pod for it",
        "replaybuffershardscolocatedwithdriver": "leave it out: the first Ape-X's shards always are",
    },
    "DQN": {"workers": "DQN's rollout workers are spec.rollouts", "replay": _HEAD_REPLAY, "learners": _HEAD_LEARNS},
    "OffPolicy": {
        "workers": "OffPolicy's rollout workers are spec.rollouts",
        "replay": _HEAD_REPLAY,
        "learners": _HEAD_LEARNS,
        "twinq": _TWIN,
        "uselstm": _RECURRENT,
        "replaysequencelength": "leave it out: a sequence has burn_in + model.max_seq_len steps",
    },
    "CQL": {
        "rollouts": "CQL learns from a dataset (spec.config.input): nothing samples",
        "workers": "CQL learns in the head: spec.head",
        "numworkers": "CQL learns from a dataset (spec.config.input): nothing samples",
        "twinq": _TWIN,
    },
}


_KEY_CUTOFF: Final = 0.7
"""Keys are many: what is less alike was hardly meant."""


def nearest_plan(given: object) -> str | None:
    """The plan that was probably meant; that of an algorithm which is none itself."""
    if not isinstance(given, str):
        return None
    if given.upper() in policies_of("OffPolicy"):
        return "OffPolicy"
    return next(iter(nearest(given, PLAN_SPECS)), None)


def unknown_key(section: Section, key: str, variant: str | None) -> str | None:
    """A sentence that leads from an unknown key to what was meant by it.

    Args:
        section: where it was found, e.g. ``("spec", "config")``.
        key: as given.
        variant: the manifest's (see `sections`), if it is known.
    """
    form = normal(key)
    known = sections(variant)
    plan = variants()[variant].plan if variant in variants() else variant
    here = known.get(section, {})
    # The same word in another spelling is what was meant; after it come the words of other libraries.
    if same := next((name for name in here if normal(name) == form), None):
        return question(same)
    if explained := _EXPLAINED_BY_PLAN.get(plan or "", {}).get(form):
        return explained
    if other := _other_variant(section, key, variant):
        return other
    if explained := _EXPLAINED.get(form):
        return explained
    if alias := _BY_PLAN.get(plan or "", {}).get(form) or _ANY_PLAN.get(form):
        return question(alias)
    elsewhere = [(*path, name) for path, fields in known.items() for name in fields if normal(name) == form]
    if elsewhere:
        return question(*(".".join(path) for path in elsewhere[:3]))
    if close := nearest(key, here, cutoff=_KEY_CUTOFF):
        return question(*close)
    return _anywhere(key, known)


def _other_variant(section: Section, key: str, variant: str | None) -> str | None:
    """The same key in the same section of other plans and algorithms."""
    having = [other for other in variants() if other != variant and key in sections(other).get(section, {})]
    if not having or variant is None:
        return None
    owners: list[str] = []
    for plan in PLAN_SPECS:
        of_plan = [each.name for each in variants_of(plan)]
        owners += [plan] if set(of_plan) <= set(having) else [name for name in of_plan if name in having]
    return f"a key of plan {' and '.join(owners)}, not of {variant}"


def _anywhere(key: str, known: Mapping[Section, Mapping[str, object]]) -> str | None:
    paths = {name: ".".join((*path, name)) for path, fields in known.items() for name in fields}
    close = nearest(key, paths, cutoff=_KEY_CUTOFF)
    return question(paths[close[0]]) if close else None

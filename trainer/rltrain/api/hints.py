"""What a misspelt or misplaced key was probably meant to be."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Final

from rltrain.api.fields import Section, sections
from rltrain.api.job import PLAN_SPECS

FUTURE_PLANS: Final = ("Apex", "ApexClassic", "CQL", "OffPolicy")

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
}
_BY_PLAN: Final[dict[str, dict[str, str]]] = {
    "DQN": {
        "batchsize": "spec.config.train_batch_size",
        "numworkers": "spec.rollouts.replicas",
        "numrolloutworkers": "spec.rollouts.replicas",
        "numenvrunners": "spec.rollouts.replicas",
        "replaybuffersize": "spec.config.buffer_size",
        "buffercapacity": "spec.config.buffer_size",
        "targetupdateinterval": "spec.config.target_network_update_freq",
        "targetnetworkupdatefrequency": "spec.config.target_network_update_freq",
        "explorationfinaleps": "spec.config.exploration_config.final_epsilon",
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
_EXPLAINED: Final = {
    "numgpus": _GPUS,
    "numgpusperworker": _GPUS,
    "numcpusperworker": "CPUs are given to a role's pods: resources: {requests: {cpu: 1}} in its block",
    "numcpusfordriver": "CPUs are given to the head's pod: spec.head.resources",
    "batchmode": "leave it out: fragments always have rollout_fragment_length steps, whatever the episodes do",
    "framework": "leave it out: it is always torch",
    "explore": "leave it out: rollouts always explore, rltrain evaluate doesn't unless told to",
    "kltarget": "leave it out: ranks that adapted a KL coefficient by themselves would drift apart",
    "replay": "the replay buffer of this release's DQN lives in the head: set spec.config.buffer_size",
    "learners": "the learner of this release's plans lives in the head or in the ranks",
}
_EXPLAINED_BY_PLAN: Final[dict[str, dict[str, str]]] = {
    "DDPPO": {
        "trainbatchsize": "leave it out: a rank's batch is rollout_fragment_length * num_envs_per_worker steps",
        "rollouts": "DDPPO's ranks sample by themselves: spec.workers",
    },
    "DQN": {"workers": "DQN's rollout workers are spec.rollouts"},
}


def normal(key: str) -> str:
    """A key without its case, hyphens and underscores."""
    return key.replace("_", "").replace("-", "").lower()


def nearest(given: str, allowed: Iterable[str], cutoff: float = 0.7) -> str | None:
    """The allowed name that looks most like the given one, if any does."""
    by_form = {normal(name): name for name in allowed}
    matches = difflib.get_close_matches(normal(given), by_form, n=1, cutoff=cutoff)
    return by_form[matches[0]] if matches else None


def nearest_plan(given: object) -> str | None:
    """The plan that was probably meant."""
    if not isinstance(given, str) or is_future_plan(given):
        return None
    return nearest(given, PLAN_SPECS, cutoff=0.6)


def is_future_plan(given: str) -> bool:
    """Whether a later release is to have this plan."""
    return normal(given) in {normal(plan) for plan in FUTURE_PLANS}


def unknown_key(section: Section, key: str, plan: str | None) -> str | None:
    """A sentence that leads from an unknown key to what was meant by it.

    Args:
        section: where it was found, e.g. ``("spec", "config")``.
        key: as given.
        plan: the manifest's, if it is known.
    """
    form = normal(key)
    known = sections(plan)
    here = known.get(section, {})
    # The same word in another spelling is what was meant; after it come the words of other libraries.
    if same := next((name for name in here if normal(name) == form), None):
        return f"did you mean {same}"
    if explained := _EXPLAINED_BY_PLAN.get(plan or "", {}).get(form):
        return explained
    if other := _other_plan(section, key, plan):
        return other
    if explained := _EXPLAINED.get(form):
        return explained
    if alias := _BY_PLAN.get(plan or "", {}).get(form) or _ANY_PLAN.get(form):
        return f"did you mean {alias}"
    elsewhere = [(*path, name) for path, fields in known.items() for name in fields if normal(name) == form]
    if elsewhere:
        return f"did you mean {' or '.join('.'.join(path) for path in elsewhere[:3])}"
    if close := nearest(key, here):
        return f"did you mean {close}"
    return _anywhere(key, known)


def _other_plan(section: Section, key: str, plan: str | None) -> str | None:
    """The same key in the same section of other plans."""
    owners = [other for other in PLAN_SPECS if other != plan and key in sections(other).get(section, {})]
    if not owners or plan is None:
        return None
    return f"a key of plan {' and '.join(owners)}, not of {plan}"


def _anywhere(key: str, known: Mapping[Section, Mapping[str, object]]) -> str | None:
    paths = {name: ".".join((*path, name)) for path, fields in known.items() for name in fields}
    close = nearest(key, paths)
    return f"did you mean {paths[close]}" if close else None

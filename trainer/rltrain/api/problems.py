"""What pydantic finds, in the words of the manifest: place, what was given, what is allowed, the right name."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError

from rltrain.api.errors import Problem
from rltrain.api.job import PLAN_SPECS, RLTrainingJob
from rltrain.api.yaml_text import Path, dotted

LATER_PLANS: Final = ("Apex", "ApexClassic", "CQL", "OffPolicy")

_ELSEWHERE: Final = {
    "learning_rate": "did you mean spec.config.lr?",
    "batch_size": "did you mean spec.config.train_batch_size (DQN) or spec.config.sgd_minibatch_size (DDPPO)?",
    "num_workers": "write rollouts: {replicas: N} for DQN, or workers: {replicas: N} for DDPPO, under spec",
    "num_rollout_workers": "write rollouts: {replicas: N} for DQN, or workers: {replicas: N} for DDPPO, under spec",
    "num_env_runners": "write rollouts: {replicas: N} for DQN, or workers: {replicas: N} for DDPPO, under spec",
    "num_envs_per_env_runner": "did you mean spec.config.num_envs_per_worker?",
    "num_gpus": "write resources: {limits: {nvidia.com/gpu: N}} under spec.head or spec.workers",
    "num_gpus_per_worker": "write resources: {limits: {nvidia.com/gpu: N}} under spec.workers or spec.rollouts",
    "num_cpus_per_worker": "write resources: {requests: {cpu: N}} under spec.workers or spec.rollouts",
    "torch_distributed_backend": "write workers: {collective: {backend: Gloo}} (or NCCL) under spec",
    "batch_mode": "fragments are always truncated here; leave it out",
    "framework": "it is always torch; leave it out",
    "env": "the environment is spec.env",
    "env_config": "write the environment's arguments as spec.env.kwargs",
    "seed": "the seed is spec.seed",
    "num_epochs": "did you mean spec.config.num_sgd_iter?",
    "minibatch_size": "did you mean spec.config.sgd_minibatch_size?",
    "epsilon_timesteps": "it belongs to spec.config.exploration_config",
    "kl_target": "DD-PPO has no KL penalty: its coefficient is always 0; leave it out",
    "use_gae": "advantages are always estimated by GAE; leave it out",
    "replay_buffer_config": "write buffer_size, learning_starts and the prioritized_replay keys under spec.config",
}
_ELSEWHERE_IN_PLAN: Final = {
    ("DDPPO", "train_batch_size"): "a rank's batch is rollout_fragment_length * num_envs_per_worker; leave it out",
}
_TYPES: Final = {
    "int_type": "an integer",
    "float_type": "a number",
    "string_type": "a string",
    "bool_type": "true or false",
    "dict_type": "a map of keys and values",
    "model_type": "a map of keys and values",
    "model_attributes_type": "a map of keys and values",
    "list_type": "a list",
    "tuple_type": "a list",
    "finite_number": "a finite number",
}


def guess_plan(spec: Any) -> str:
    """The plan that a spec most likely means: its own, the nearest name, or the one whose role it has."""
    plan = spec.get("plan") if isinstance(spec, Mapping) else None
    if isinstance(plan, str):
        if plan in PLAN_SPECS:
            return plan
        names = {name.lower(): name for name in PLAN_SPECS}
        near = difflib.get_close_matches(plan.lower().replace("-", ""), names, n=1)
        if near:
            return names[near[0]]
    return "DDPPO" if isinstance(spec, Mapping) and "workers" in spec else "DQN"


def problems_of(error: ValidationError, plan: str) -> list[Problem]:
    """Every error as a problem, without its place."""
    return [problem for details in error.errors() if (problem := _problem(dict(details), plan)) is not None]


def _problem(details: dict[str, Any], plan: str) -> Problem:
    # pydantic names the chosen plan in the path of a tagged union; the manifest doesn't.
    location: Path = tuple(part for i, part in enumerate(details["loc"]) if not (i == 1 and part in PLAN_SPECS))
    kind, context, given = details["type"], details.get("ctx", {}), details.get("input")
    path = dotted(location)
    if kind == "extra_forbidden":
        return Problem(path, "no such key", _right_name(location, plan))
    if kind == "missing":
        return Problem(path, "is required", _description(location, plan))
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        return _plan_problem(given)
    if kind in _TYPES:
        return Problem(path, f"must be {_TYPES[kind]}, not {_shown(given)}", _remedy(kind, given))
    if kind == "int_from_float":
        return Problem(path, f"must be an integer, not {_shown(given)}")
    if kind in ("literal_error", "enum"):
        allowed = _allowed(location, plan)
        near = difflib.get_close_matches(str(given).lower(), [a.lower() for a in allowed], n=1)
        hint = next((f"did you mean {a}?" for a in allowed if near and a.lower() == near[0]), None)
        return Problem(path, f"must be {context.get('expected', 'one of ' + str(allowed))}, not {_shown(given)}", hint)
    if kind == "value_error":
        return Problem(path, str(context.get("error", details["msg"])))
    if kind == "string_pattern_mismatch" and path == "metadata.name":
        return Problem(path, f"must be a letter, then lower-case letters, digits and hyphens, not {_shown(given)}")
    if kind == "string_pattern_mismatch":
        return Problem(path, f"must be a quantity, not {_shown(given)}", "such as 500m, 2 or 4Gi")
    message = details["msg"].replace("Input should be", "must be").replace("String should have", "must have")
    return Problem(path, f"{message}, not {_shown(given)}")


def _plan_problem(spec: Any) -> Problem:
    known = ", ".join(sorted(PLAN_SPECS))
    plan = spec.get("plan") if isinstance(spec, Mapping) else None
    if plan is None:
        return Problem("spec.plan", "is required", f"one of {known}")
    if plan in LATER_PLANS:
        return Problem("spec.plan", f"{plan} isn't in this release", f"one of {known}")
    return Problem("spec.plan", f"must be one of {known}, not {_shown(plan)}", f"did you mean {guess_plan(spec)}?")


def _right_name(location: Path, plan: str) -> str | None:
    """Where an unknown key belongs, or the nearest key there is."""
    *section, key = location
    name = str(key)
    if (plan, name) in _ELSEWHERE_IN_PLAN:
        return _ELSEWHERE_IN_PLAN[plan, name]
    for other in sorted(PLAN_SPECS):
        if other != plan and tuple(location) in set(_paths(other)):
            return f"it belongs to plan {other}, and this one is {plan}"
    here = [path for path in _paths(plan) if path[-1] == name and path != tuple(location)]
    if here:
        return f"it belongs to {dotted(here[0][:-1])}"
    if name in _ELSEWHERE:
        return _ELSEWHERE[name]
    siblings = [str(path[-1]) for path in _paths(plan) if list(path[:-1]) == section]
    if near := _nearest(name, siblings):
        return f"did you mean {near}?"
    anywhere = {str(path[-1]): path for path in _paths(plan)}
    if near := _nearest(name, anywhere):
        return f"did you mean {dotted(anywhere[near])}?"
    return f"one of {', '.join(sorted(siblings))}" if siblings and len(siblings) <= 8 else None


def _nearest(name: str, names: Iterable[str]) -> str | None:
    folded = {candidate.replace("_", "").lower(): candidate for candidate in names}
    near = difflib.get_close_matches(name.replace("_", "").lower(), folded, n=1, cutoff=0.75)
    return folded[near[0]] if near else None


def _paths(plan: str) -> Iterator[Path]:
    yield from _fields(RLTrainingJob, (), plan)


def _fields(model: type[BaseModel], prefix: Path, plan: str) -> Iterator[Path]:
    for name, info in model.model_fields.items():
        path = (*prefix, info.alias or name)
        yield path
        if path == ("spec",):
            yield from _fields(PLAN_SPECS[plan], path, plan)
        elif path != ("status",):
            for nested in _models(info.annotation):
                yield from _fields(nested, path, plan)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) not in (list, dict, tuple):
        for argument in get_args(annotation):
            yield from _models(argument)


def _field(location: Path, plan: str) -> Any:
    model: Any = RLTrainingJob
    info: Any = None
    for depth, part in enumerate(location):
        info = next((f for n, f in model.model_fields.items() if part in (n, f.alias)), None) if model else None
        if info is None:
            return None
        model = PLAN_SPECS[plan] if depth == 0 and part == "spec" else next(_models(info.annotation), None)
    return info


def _description(location: Path, plan: str) -> str | None:
    info = _field(location, plan)
    description = getattr(info, "description", None)
    return description.rstrip(".") if description else None


def _allowed(location: Path, plan: str) -> list[str]:
    info = _field(location, plan)
    return [str(value) for value in _literals(getattr(info, "annotation", None))]


def _literals(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    else:
        for argument in get_args(annotation):
            yield from _literals(argument)


def _remedy(kind: str, given: Any) -> str | None:
    if isinstance(given, str) and kind in ("int_type", "float_type"):
        try:
            float(given)
        except ValueError:
            if given[:-1].replace(".", "", 1).isdigit() and given[-1] in "kKmM":
                factor = 1000 if given[-1] in "kK" else 1_000_000
                return f"write {float(given[:-1]) * factor:.0f}"
            return None
        return f"write {given} without quotes"
    return None


def _shown(given: Any) -> str:
    if given is None:
        return "nothing"
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, str):
        return f'"{given}"' if len(given) <= 60 else f'"{given[:57]}..."'
    if isinstance(given, Mapping):
        return "a map"
    if isinstance(given, list | tuple):
        return "a list"
    return str(given)

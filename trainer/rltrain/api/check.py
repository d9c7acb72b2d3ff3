"""A manifest's tree against the models: everything that is wrong with it, in plain words."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from rltrain.api import hints, names, nulls
from rltrain.api.base import QUANTITY_PATTERN
from rltrain.api.document import Node, Path, problem
from rltrain.api.errors import Problem
from rltrain.api.fields import example, policies_of, sections, variants, variants_of
from rltrain.api.job import PLAN_SPECS, RLTrainingJob, SpecBase
from rltrain.api.nearest import nearest, question

_SUFFIXES: Final = {"k": 10**3, "K": 10**3, "m": 10**6, "M": 10**6, "G": 10**9, "B": 10**9}
_BOUNDS: Final = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}
_TYPES: Final = {
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "text",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "list_type": "a list",
    "tuple_type": "a list",
}
_ITEM: Final = {"too_short": "at least", "too_long": "at most"}


def check(root: Node) -> tuple[RLTrainingJob | None, list[Problem]]:
    """The job that a document describes, or all that is wrong with it."""
    tree = root.plain()
    if not isinstance(tree, dict):
        return None, [problem((), root.mark, f"must be an {names.KIND} object, not {_shown(tree)}")]
    problems, plan, tree = _plan_problems(root, tree)
    found, variant, tree = _policy_problems(root, tree, plan)
    problems += found + nulls.null_problems(root, variant)
    try:
        job = RLTrainingJob.model_validate(tree, by_alias=True, by_name=False)
    except ValidationError as error:
        errors = error.errors(include_url=False)
    else:
        return (job if not problems else None), problems
    if plan is None and isinstance(tree.get("spec"), dict):
        # No plan to judge by: what all plans share can still be judged.
        errors = [found for found in errors if found["loc"] != ("spec",)] + _shared_errors(tree["spec"])
    told = {found.path for found in problems}
    if "spec.config.policy" in told:
        # What pydantic says of a config whose model it can't choose has been said better.
        told.add("spec.config")
    return None, problems + [p for found in errors if (p := _problem(root, found, variant)).path not in told]


def _plan_problems(root: Node, tree: dict[str, Any]) -> tuple[list[Problem], str | None, dict[str, Any]]:
    """What is wrong with ``spec.plan``, the plan to judge the rest by, and the tree with that plan in it."""
    spec = tree.get("spec")
    if not isinstance(spec, dict):
        return [], None, tree
    path: Path = ("spec", "plan")
    plans = ", ".join(PLAN_SPECS)
    if "plan" not in spec:
        return [problem(path, root.find(path)[0], f"is required: one of {plans}")], None, tree
    given = spec["plan"]
    if isinstance(given, str) and re.fullmatch(names.PLAN_REFERENCE, given):
        return _base_problems(root, tree)
    if isinstance(given, str) and given in PLAN_SPECS:
        return list(_needless_base(root, spec)), given, tree
    message, hint = f"must be one of {plans}, not {_shown(given)}", None
    if isinstance(given, str) and ":" in given:
        hint = 'a plan of your own is "package.module:function"'
        return [problem(path, root.find(path)[0], message, hint)], None, tree
    meant = hints.nearest_plan(given)
    if meant is not None:
        algorithm = str(given).upper()
        is_one = algorithm in policies_of(meant)
        hint = f"write plan: {meant} and config.policy: {algorithm}" if is_one else question(meant)
        tree = {**tree, "spec": {**spec, "plan": meant}}
    return [problem(path, root.find(path)[0], message, hint)], meant, tree


def _base_problems(root: Node, tree: dict[str, Any]) -> tuple[list[Problem], str | None, dict[str, Any]]:
    """The same for ``spec.basePlan``, by which the rest is judged where the plan is the user's own."""
    spec, path = tree["spec"], ("spec", "basePlan")
    given = spec.get("basePlan")
    if isinstance(given, str) and given in PLAN_SPECS:
        return [], given, tree
    plans = ", ".join(PLAN_SPECS)
    mark = root.find(path)[0]
    if given is None:
        like = f"the built-in plan whose config, roles and context {spec['plan']} has; OffPolicy suits most"
        return [problem(path, mark, f"is required with a plan of your own: one of {plans}", like)], None, tree
    meant = hints.nearest_plan(given)
    if meant is not None:
        tree = {**tree, "spec": {**spec, "basePlan": meant}}
    hint = None if meant is None else question(meant)
    return [problem(path, mark, f"must be one of {plans}, not {_shown(given)}", hint)], meant, tree


def _needless_base(root: Node, spec: dict[str, Any]) -> Iterator[Problem]:
    path = ("spec", "basePlan")
    if spec.get("basePlan") is not None:
        message = f"is for plans of your own, and {spec['plan']} is built in"
        yield problem(path, root.find(path)[0], message, 'leave it out, or set plan to your "package.module:function"')


def _policy_problems(
    root: Node, tree: dict[str, Any], plan: str | None
) -> tuple[list[Problem], str | None, dict[str, Any]]:
    """The same for ``spec.config.policy``, where a plan has several algorithms; returns a variant's name."""
    policies = policies_of(plan)
    config = tree["spec"].get("config") if plan is not None else None
    if plan is None or not policies or not isinstance(config, dict | None):
        return [], plan, tree
    path: Path = ("spec", "config", "policy")
    given = None if config is None else config.get("policy")
    names_of = {variant.policy: variant.name for variant in variants_of(plan)}
    if given in policies:
        return [], names_of[given], tree
    mark, _, _ = root.find(path)
    if given is None:
        return [problem(path, mark, f"is required: one of {', '.join(policies)}")], plan, tree
    message = f"must be one of {', '.join(policies)}, not {_shown(given)}"
    meant = next(iter(nearest(given, policies)), None) if isinstance(given, str) else None
    if meant is None:
        return [problem(path, mark, message)], plan, tree
    tree = {**tree, "spec": {**tree["spec"], "config": {**(config or {}), "policy": meant}}}
    return [problem(path, mark, message, question(meant))], names_of[meant], tree


def _shared_errors(spec: dict[str, Any]) -> list[ErrorDetails]:
    shared = {key: value for key, value in spec.items() if key in sections(None)["spec",]}
    try:
        SpecBase.model_validate(shared, by_alias=True, by_name=False)
    except ValidationError as error:
        return [{**found, "loc": ("spec", *found["loc"])} for found in error.errors(include_url=False)]
    return []


def _problem(root: Node, error: ErrorDetails, variant: str | None) -> Problem:
    path = _without_tags(error["loc"])
    kind, given = error["type"], error["input"]
    context: Mapping[str, Any] = error.get("ctx", {})
    if kind == "extra_forbidden":
        return problem(
            path, root.find(path)[0], "unknown key", hints.unknown_key(_section(path), str(path[-1]), variant)
        )
    if kind == "missing":
        mark, _, _ = root.find(path[:-1])
        if isinstance(path[-1], int):
            return problem(path[:-1], mark, "has too few items")
        return problem(path, mark, "is required", _example(path, variant))
    if kind == "value_error":
        return _relation(root, path, str(context["error"]))
    if kind == "literal_error":
        return _choice(root, path, given, variant)
    message, hint = _words(kind, given, context)
    if _TYPES.get(kind) == "an object":
        hint = _example(path, variant)
    if path == ("metadata", "name"):
        message, hint = _name_words(given, message)
    if path == ("spec", "config", "kl_coeff"):
        hint = "ranks adapting a KL coefficient on their own would drift apart"
    return problem(path, root.find(path)[0], message or error["msg"], hint)


def _without_tags(loc: Path) -> Path:
    """Pydantic puts the tag of a union after ``spec``, and after ``config`` where that is one too."""
    if len(loc) < 2 or loc[0] != "spec" or loc[1] not in PLAN_SPECS:
        return loc
    plan, rest = str(loc[1]), loc[2:]
    tagged = len(rest) > 1 and rest[0] == "config" and rest[1] in policies_of(plan)
    return (loc[0], rest[0], *rest[2:]) if tagged else (loc[0], *rest)


def _section(path: Path) -> tuple[str, ...]:
    return tuple(step for step in path[:-1] if isinstance(step, str))


def _example(path: Path, variant: str | None) -> str | None:
    """The line to write for a required key."""
    key = str(path[-1])
    field = sections(variant).get(_section(path), {}).get(key)
    return f"for example {key}: {example(field)}" if field is not None and field.is_required() else None


def _words(kind: str, given: Any, context: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Message and hint of an error of type, range or form."""
    if kind in _TYPES:
        return f"must be {_TYPES[kind]}, not {_shown(given)}", _type_hint(kind, given)
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        return f"must be {words} {context[bound]:g}, not {_shown(given)}", None
    if kind in _ITEM:
        bound = context.get("min_length", context.get("max_length"))
        return f"must have {_ITEM[kind]} {bound} items, not {context['actual_length']}", None
    if kind == "string_pattern_mismatch" and context["pattern"] == QUANTITY_PATTERN:
        return f"must be a quantity such as 500m, 2 or 4Gi, not {_shown(given)}", None
    if kind == "string_pattern_mismatch":
        return f"must match {context['pattern']}, not {_shown(given)}", None
    if kind == "string_too_long":
        return f"must have at most {context['max_length']} characters, not {len(given)}", None
    if kind == "string_too_short":
        return "must not be empty", None
    return None, None


def _type_hint(kind: str, given: Any) -> str | None:
    """What to write instead of a value of the wrong type."""
    if kind == "string_type" and isinstance(given, int | float):
        return f'write "{str(given).lower() if isinstance(given, bool) else given}"'
    if not isinstance(given, str):
        return None
    if kind in ("int_type", "float_type"):
        if re.fullmatch(r"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?", given):
            return f"write {given} without quotes"
        suffixed = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s?([kKmMGB])", given)
        if suffixed:
            return f"write {float(suffixed[1]) * _SUFFIXES[suffixed[2]]:.0f}"
    if kind == "bool_type" and given.lower() in ("true", "false"):
        return f"write {given.lower()} without quotes"
    return None


def _name_words(given: Any, message: str | None) -> tuple[str | None, str | None]:
    """The job's name has limits of its own, and each has a reason."""
    if isinstance(given, str) and len(given) > names.MAX_JOB_NAME:
        reason = "the names of the job's pods are made from it"
        return f"has {len(given)} characters, at most {names.MAX_JOB_NAME} are allowed: {reason}", None
    if isinstance(given, str):
        rule = "must begin with a letter and consist of lower-case letters, digits and hyphens"
        better = re.sub(r"[^a-z0-9-]+", "-", given.lower()).strip("-").lstrip("0123456789-")
        return f"{rule}, not {_shown(given)}", f"for example {better}" if better else None
    return message, None


def _choice(root: Node, path: Path, given: Any, variant: str | None) -> Problem:
    allowed = _allowed(path, variant)
    message = f"must be {'one of ' if len(allowed) > 1 else ''}{', '.join(allowed)}, not {_shown(given)}"
    close = nearest(given, allowed) if isinstance(given, str) else []
    return problem(path, root.find(path)[0], message, question(*close) if close and len(allowed) > 1 else None)


def _allowed(path: Path, variant: str | None) -> list[str]:
    """Values of a Literal field of this variant or, where that isn't known, of any."""
    for each in (variant, *variants()):
        if (field := sections(each).get(_section(path), {}).get(str(path[-1]))) is not None:
            options = [option for part in get_args(field.annotation) for option in (get_args(part) or (part,))]
            return [str(option) for option in options if isinstance(option, str)]
    return []


def _relation(root: Node, path: Path, message: str) -> Problem:
    """A rule between fields: the place is that of the first one it names that the manifest gives."""
    for word in re.findall(r"[A-Za-z_][\w.]*", message):
        steps = word.rstrip(".").split(".")
        mark, _, depth = root.find((*path, *steps))
        if depth == len(path) + len(steps):
            return problem((*path, *steps), mark, message)
    return problem(path, root.find(path)[0], message)


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return f'the text "{value if len(value) <= 60 else value[:57] + "..."}"'
    return "an object" if isinstance(value, Mapping) else "a list"

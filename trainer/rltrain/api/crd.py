"""The CRD, made from the models: a structural schema with defaults, CEL rules, printer columns and status."""

from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel

from rltrain.api import names
from rltrain.api.fields import Variant, variants, variants_of
from rltrain.api.job import PLAN_SPECS, STOP_CRITERIA
from rltrain.api.status import JobStatus
from rltrain.api.structural import Schema, convert, merge_objects

_BASE: Final = "(has(self.basePlan) ? self.basePlan : self.plan)"
"""CEL for the built-in plan by which the rest is judged."""

FIXED: Final = {
    "env.id": "the agent has learnt for this one",
    "checkpoint.storage": "the job's checkpoints are there",
    **dict.fromkeys(
        (
            "config.policy",
            "config.model",
            "config.hiddens",
            "config.dueling",
            "config.noisy",
            "config.num_atoms",
            "config.vf_share_layers",
            "config.multiagent",
        ),
        "a checkpoint holds the networks as they are",
    ),
}
"""What no edit may change once a driver has begun, by path below `spec`, and why."""

COLUMNS: Final = (
    ("Plan", "string", ".spec.plan"),
    ("State", "string", ".status.state"),
    ("Steps", "integer", ".status.progress.envSteps"),
    ("Return", "number", ".status.progress.episodeReturnMean"),
    ("Ready", "string", '.status.conditions[?(@.type=="ClusterReady")].status'),
    ("Age", "date", ".metadata.creationTimestamp"),
)

SCALE: Final = {
    "specReplicasPath": ".spec.rollouts.replicas",
    "statusReplicasPath": ".status.rollouts",
    "labelSelectorPath": ".status.selector",
}
"""Of `kubectl scale` and autoscalers."""


def crd() -> Schema:
    """The CustomResourceDefinition as it is applied."""
    version = {
        "name": names.VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _root()},
        "subresources": {"status": {}, "scale": SCALE},
        "additionalPrinterColumns": [{"name": n, "type": t, "jsonPath": path} for n, t, path in COLUMNS],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names.PLURAL}.{names.GROUP}"},
        "spec": {
            "group": names.GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": names.KIND,
                "listKind": f"{names.KIND}List",
                "plural": names.PLURAL,
                "singular": names.SINGULAR,
                "shortNames": [names.SHORT_NAME],
            },
            "versions": [version],
        },
    }


def _root() -> Schema:
    return {
        "type": "object",
        "description": "Trains an agent with one execution plan, on a laptop or on a cluster.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": _spec(),
            "status": _status(),
        },
        "x-kubernetes-validations": [
            _rule(
                f"self.metadata.name.size() <= {names.MAX_JOB_NAME}",
                f"metadata.name must have at most {names.MAX_JOB_NAME} characters: the names of the job's pods are "
                "made from it",
            ),
            _rule(
                f"self.metadata.name.matches('{names.JOB_NAME_PATTERN}')",
                "metadata.name must begin with a letter and consist of lower-case letters, digits and hyphens: the "
                "job's Service carries it",
            ),
            *_fixed(),
        ],
    }


def _status() -> Schema:
    schema = JobStatus.model_json_schema(by_alias=True)
    return convert(schema, schema.get("$defs", {}), defaults=False)


def _spec() -> Schema:
    plans = {plan: model.model_json_schema(by_alias=True) for plan, model in PLAN_SPECS.items()}
    specs = {plan: convert(schema, schema["$defs"], defaults=True) for plan, schema in plans.items()}
    keys = {name: _config(variant) for name, variant in variants().items()}
    configs = {plan: merge_objects([keys[variant.name] for variant in variants_of(plan)]) for plan in PLAN_SPECS}
    for plan, spec in specs.items():
        spec["properties"]["config"] = configs[plan]
    merged = merge_objects(list(specs.values()))
    merged["description"] = "What to train and how."
    merged["properties"]["config"]["description"] = "Options of the plan, with the keys that RLlib users know."
    merged["properties"]["basePlan"].pop("nullable", None)
    merged["x-kubernetes-validations"] = [
        *_own_plans(sorted(plans)),
        *_belonging("", {plan: set(spec["properties"]) for plan, spec in specs.items()}),
        *_belonging("config", {plan: set(config["properties"]) for plan, config in configs.items()}),
        *_by_policy({name: set(config["properties"]) for name, config in keys.items()}),
        *(
            _rule(f"has(self.{key}) || {_BASE} != '{plan}'", f"plan {plan} needs spec.{key}")
            for plan, spec in specs.items()
            for key in sorted(set(spec["required"]) - set(merged["required"]))
        ),
        *(
            _rule(
                f"!has(self.config) || has(self.config.{key}) || {_BASE} != '{plan}'",
                f"plan {plan} needs spec.config.{key}",
            )
            for plan, config in configs.items()
            for key in sorted(set(config.get("required", [])))
        ),
    ]
    merged["properties"]["config"].pop("required", None)
    _relations(merged["properties"])
    return merged


def _relations(spec: Schema) -> None:
    """What pydantic checks between the fields of one block, and CEL can check too."""
    spec["stop"]["x-kubernetes-validations"] = [
        _rule(
            " || ".join(f"has(self.{criterion})" for criterion in STOP_CRITERIA),
            f"give at least one of {', '.join(STOP_CRITERIA)}",
        )
    ]
    spec["checkpoint"]["properties"]["storage"]["x-kubernetes-validations"] = [
        _rule(
            "!has(self.claim) || (!has(self.size) && !has(self.storageClassName))",
            "give either claim, or size and storageClassName, not both",
        )
    ]
    spec["code"]["x-kubernetes-validations"] = [
        _rule(
            "[has(self.configMap), has(self.claim), has(self.uri)].filter(given, given).size() == 1",
            "give exactly one of configMap, claim and uri",
        )
    ]
    spec["rollouts"]["x-kubernetes-validations"] = [
        _rule(
            "!has(self.minReplicas) || !has(self.replicas) || self.minReplicas <= self.replicas",
            "minReplicas must not exceed replicas",
            ".minReplicas",
        ),
        _rule(
            "!has(self.maxReplicas) || !has(self.replicas) || self.maxReplicas >= self.replicas",
            "maxReplicas must not be less than replicas",
            ".maxReplicas",
        ),
        _rule(
            "!self.autoscale || has(self.maxReplicas) && (!has(self.replicas) || self.replicas > 0)",
            "autoscale needs maxReplicas, and replicas of at least 1 to begin with",
            ".autoscale",
        ),
    ]
    # The block's own default is judged before its fields have theirs.
    spec["scheduling"]["x-kubernetes-validations"] = [
        _rule(
            "!has(self.gang) || !(self.gang in ['None', 'Kubernetes']) || !has(self.queueName)",
            "queueName needs gang Auto, Kueue or Volcano: nobody else keeps a queue",
            ".queueName",
        ),
        _rule(
            "!has(self.gang) || self.gang != 'Kueue' || has(self.queueName)",
            "gang Kueue needs queueName, the LocalQueue of the job's namespace",
        ),
    ]
    spec["workers"]["x-kubernetes-validations"] = [
        _rule(
            "!has(self.minReplicas) || self.minReplicas <= self.replicas",
            "minReplicas must not exceed replicas",
            ".minReplicas",
        )
    ]


def _fixed() -> list[Schema]:
    """Rules for the whole object by which a field stays what it is, given or not."""
    before, now = "oldSelf.spec", "self.spec"

    def is_changed(path: str) -> str:
        section, _, key = path.partition(".")

        def given(spec: str) -> str:
            return f"(has({spec}.{section}) && has({spec}.{section}.{key}))"

        return f"({given(now)} != {given(before)} || {given(now)} && {now}.{path} != {before}.{path})"

    hasnt_begun = "!has(oldSelf.status) || !has(oldSelf.status.progress)"
    return [
        _none_of(
            {f"spec.{path}": is_changed(path) for path in FIXED if FIXED[path] == why},
            f" can't be changed once training has begun, {why}: make another job",
            unless=hasnt_begun,
        )
        for why in dict.fromkeys(FIXED.values())
    ]


def _own_plans(built_in: list[str]) -> list[Schema]:
    """A plan is a built-in one, or the user's own, which says like which of those it is."""
    among = f"self.plan in {built_in}".replace('"', "'")
    return [
        _rule("self.plan == oldSelf.plan", "plan can't be changed: delete the job and create it anew", ".plan"),
        _rule(f"{_BASE} == {_BASE.replace('self', 'oldSelf')}", "basePlan can't be changed", ".basePlan"),
        _rule(
            f"{among} || self.plan.matches('{names.PLAN_REFERENCE}')",
            f"plan must be one of {', '.join(built_in)}, or one's own as package.module:function",
            ".plan",
        ),
        _rule(
            f"({among}) != has(self.basePlan)",
            "basePlan is needed with a plan of one's own, as the built-in plan whose config and roles it has, and "
            "with no other",
        ),
    ]


def _belonging(section: str, keys: dict[str, set[str]]) -> list[Schema]:
    """Rules for the keys that not every plan has."""
    parent = f"self.{section}" if section else "self"
    guard = f"!has({parent}) || " if section else ""
    return [
        _none_of(
            {".".join(part for part in ("spec", section, key) if part): f"has({parent}.{key})" for key in owned},
            f" belongs to plan {' or '.join(owners)}",
            unless=f"{guard}{_BASE} in {_listed(owners)}",
        )
        for owners, owned in _by_owners(keys).items()
    ]


def _by_policy(keys: dict[str, set[str]]) -> list[Schema]:
    """Rules for the keys that only some of a plan's algorithms have."""
    return [
        _none_of(
            {f"spec.config.{key}": f"has(self.config.{key})" for key in owned},
            f" belongs to policy {' or '.join(owners)}",
            unless=f"!has(self.config) || !has(self.config.policy) || self.config.policy in {_listed(owners)}",
        )
        for plan in PLAN_SPECS
        for owners, owned in _by_owners(
            {variant.policy: keys[variant.name] for variant in variants_of(plan) if variant.policy is not None}
        ).items()
    ]


def _by_owners(keys: dict[str, set[str]]) -> dict[tuple[str, ...], list[str]]:
    """Keys that not all have, by who has them."""
    found: dict[tuple[str, ...], list[str]] = {}
    for key in sorted({key for owned in keys.values() for key in owned}):
        owners = tuple(sorted(owner for owner, owned in keys.items() if key in owned))
        if len(owners) < len(keys):
            found.setdefault(owners, []).append(key)
    return found


def _listed(words: Sequence[str]) -> str:
    """A list in CEL."""
    return "[" + ", ".join(f"'{word}'" for word in words) + "]"


def _none_of(broken: dict[str, str], why: str, *, unless: str) -> Schema:
    """One rule for many fields, which tells of the first: each rule is evaluated with each write, also of the status.

    Args:
        broken: a condition for each field's path, in CEL.
        why: what is said after the path.
        unless: in which case all are fine.
    """
    *others, last = broken
    first = "".join(f"{broken[path]} ? '{path}' : " for path in others)
    rule = f"{unless} || !({' || '.join(broken.values())})"
    return {"rule": rule, "messageExpression": f"({first}'{last}') + \"{why}\""}


def _rule(rule: str, message: str, field: str | None = None) -> Schema:
    return {"rule": rule, "message": message} | ({"fieldPath": field} if field else {})


def _config(variant: Variant) -> Schema:
    """A variant's options; a key whose default alone it changes keeps the description of the model it comes from."""
    model = variant.config
    schema = model.model_json_schema(by_alias=True)
    config = convert(schema, schema.get("$defs", {}), defaults=False)
    models = [base for base in model.__mro__ if issubclass(base, BaseModel)]
    for name, field in model.model_fields.items():
        described = (base.model_fields[name].description for base in models if name in base.model_fields)
        if description := next(filter(None, described), None):
            config["properties"][field.alias or name]["description"] = description
    return config

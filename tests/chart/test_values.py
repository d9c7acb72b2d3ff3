"""Every value is described, checked and read; the operator may do what it does and no more."""

import re

from ruamel.yaml import YAML

from chart.reference import SCHEMA, commented, described, given, with_table
from chart.rendering import CHART, ROOT
from rltrain_operator.render import gang
from rltrain_operator.runtime import kinds
from rltrain_operator.runtime.settings import parse

TEMPLATES = {path.name: path.read_text() for path in sorted((CHART / "templates").iterdir())}


def test_schema_and_values_have_the_same_keys() -> None:
    assert {key for key, _ in described()} == {key for key, _ in given()}


def test_every_key_is_described_and_no_closed_object_takes_others() -> None:
    assert SCHEMA["additionalProperties"] is False
    for key, part in described():
        assert part["description"].endswith("."), key
        if "properties" in part and key != "global":  # a parent chart shares it with others
            assert part["additionalProperties"] is False, key


def test_comments_and_table_say_what_the_schema_says() -> None:
    """`make chart` writes them."""
    for name, write in (("values.yaml", commented), ("README.md", with_table)):
        text = (CHART / name).read_text()
        assert write(text) == text


def test_every_key_is_read_by_a_template() -> None:
    text = "".join(TEMPLATES.values())
    for key, part in described():
        if "properties" not in part:
            assert re.search(rf"\.Values\.{re.escape(key)}\b", text), f"{key} is read by no template"


def test_every_key_that_a_template_reads_is_in_the_schema() -> None:
    keys = {key for key, _ in described()}
    for name, text in TEMPLATES.items():
        for read in re.findall(r"\.Values\.([A-Za-z.]+)", text):
            assert read in keys, f"{name} reads {read}"


def test_every_variable_of_the_deployment_is_one_that_the_operator_reads() -> None:
    """A setting is told apart from its default by a value that can't be it."""
    variables = re.findall(r"name: (RLTRAIN_\w+)", TEMPLATES["deployment.yaml"])
    others = {
        "RLTRAIN_TRAINER_IMAGE_PULL_POLICY": "Never",
        "RLTRAIN_LOG_FORMAT": "plain",
        "RLTRAIN_WORKERS": "63",
        "RLTRAIN_REQUESTS_PER_SECOND": "63",
        "RLTRAIN_RESYNC_SECONDS": "63",
        "RLTRAIN_LEADER_ELECTION": "false",
        "RLTRAIN_LEASE_SECONDS": "63",
        "RLTRAIN_JOB_EGRESS": "[]",
    }
    base = {"RLTRAIN_TRAINER_IMAGE": "x", "RLTRAIN_LEADER_ELECTION": "true", "POD_NAMESPACE": "system"}

    assert len(variables) == 13
    for variable in variables:
        changed = parse([], {**base, variable: others.get(variable, "other")})
        assert changed != parse([], base), variable


def test_definition_in_the_chart_is_the_one_of_the_models() -> None:
    assert (CHART / "files/crd.yaml").read_text() == (ROOT / "crds/rltrain.dev_rltrainingjobs.yaml").read_text()


def test_operator_may_do_what_it_does_and_no_more() -> None:
    texts = re.findall(
        r'define "rltrain.(?:r|clusterR)ules" -}}\n(.*?){{- end }}', TEMPLATES["_helpers.tpl"], re.DOTALL
    )
    assert len(texts) == 2
    allowed: dict[tuple[str, str], set[str]] = {}
    for rule in YAML(typ="safe").load("".join(texts)):
        for resource in rule["resources"]:
            allowed.setdefault((rule["apiGroups"][0], resource), set()).update(rule["verbs"])

    needed: dict[tuple[str, str], set[str]] = {
        ("rltrain.dev", "rltrainingjobs"): {"list", "watch", "delete"},
        ("rltrain.dev", "rltrainingjobs/status"): {"patch"},
        ("rltrain.dev", "rltrainingjobs/finalizers"): {"update"},
        ("batch", "jobs"): {"get", "list", "watch", "create", "patch", "delete"},
        ("", "namespaces"): {"get"},
        ("", "pods"): {"list"},
        ("", "events"): {"list"},
        ("events.k8s.io", "events"): {"create"},
        ("", "secrets"): {"get", "create"},
        ("", "persistentvolumeclaims"): {"create"},
    }
    needed |= {(kind.group, kind.plural): {"get", "list", "create", "patch"} for kind in (*kinds.LISTED, kinds.VOLCANO)}
    needed |= {
        (gang.KUBERNETES, "podgroups"): {"get", "list", "create", "patch", "delete"},
        (kinds.KUEUE, "workloads"): {"get", "list", "watch", "create", "delete"},
        (kinds.KUEUE, "workloads/status"): {"patch"},
        (kinds.KUEUE, "resourceflavors"): {"get"},
        (kinds.PRIORITY_CLASS.group, kinds.PRIORITY_CLASS.plural): {"get"},
    }
    assert allowed == needed

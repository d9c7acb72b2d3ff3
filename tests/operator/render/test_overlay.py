"""Templates merge as Kubernetes' strategic merge would."""

from rltrain_operator.render.overlay import overlay, template_problems


def test_maps_merge_and_other_values_replace() -> None:
    base = {"a": {"x": 1, "y": 2}, "tolerations": [{"key": "old"}], "b": 1}

    assert overlay(base, {"a": {"y": 3}, "tolerations": [{"key": "new"}], "b": {"c": 1}}) == {
        "a": {"x": 1, "y": 3},
        "tolerations": [{"key": "new"}],
        "b": {"c": 1},
    }


def test_null_removes() -> None:
    assert overlay({"a": 1, "b": {"c": 1, "d": 2}}, {"a": None, "b": {"c": None}}) == {"b": {"d": 2}}


def test_containers_merge_by_name_and_others_are_added_in_order() -> None:
    base = {"containers": [{"name": "rltrain", "image": "a", "args": ["head"]}]}

    merged = overlay(base, {"containers": [{"name": "side"}, {"name": "rltrain", "image": "b"}]})

    assert merged["containers"] == [{"name": "rltrain", "image": "b", "args": ["head"]}, {"name": "side"}]


def test_mounts_of_one_volume_at_two_places_are_two() -> None:
    base = {"volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}]}

    merged = overlay(
        base, {"volumeMounts": [{"name": "data", "mountPath": "/more"}, {"name": "mine", "mountPath": "/data"}]}
    )

    assert merged["volumeMounts"] == [{"name": "mine", "mountPath": "/data"}, {"name": "data", "mountPath": "/more"}]


def test_union_items_are_replaced_whole() -> None:
    base = {"volumes": [{"name": "tmp", "emptyDir": {}}], "env": [{"name": "A", "value": "1"}]}
    patch = {
        "volumes": [{"name": "tmp", "hostPath": {"path": "/x"}}],
        "env": [{"name": "A", "valueFrom": {"fieldRef": {}}}],
    }

    assert overlay(base, patch) == patch


def test_base_is_left_as_it_was() -> None:
    base = {"containers": [{"name": "rltrain", "env": []}]}

    overlay(base, {"containers": [{"name": "rltrain", "env": [{"name": "A", "value": "1"}]}]})

    assert base == {"containers": [{"name": "rltrain", "env": []}]}


def test_problems_name_the_place() -> None:
    template = {
        "spec": {
            "hostname": "me",
            "volumes": {"name": "x"},
            "containers": [{"name": "rltrain", "env": [{"value": "1"}]}, "side"],
        }
    }

    assert [problem.path for problem in template_problems(template, "t")] == [
        "t.spec.hostname",
        "t.spec.volumes",
        "t.spec.containers[0].env[0]",
        "t.spec.containers[1]",
    ]
    assert [problem.path for problem in template_problems({"spec": []}, "t")] == ["t.spec"]
    assert template_problems({"metadata": {"labels": {"a": "b"}}}, "t") == []

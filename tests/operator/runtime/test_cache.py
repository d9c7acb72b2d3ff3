"""The cache holds the newest state that anyone has seen."""

import time
from typing import Any

import pytest

from rltrain_operator.runtime.cache import Cache, Store, job_key, key_of

KEY = ("team", "cartpole")


def made(version: int, uid: str = "u", name: str = "cartpole", **parts: Any) -> dict[str, Any]:
    metadata = {"namespace": "team", "name": name, "uid": uid, "resourceVersion": str(version), "managedFields": []}
    return {"metadata": metadata, **parts}


def test_older_state_does_not_replace_a_newer_one() -> None:
    store = Store()
    store.see(made(5, spec={"plan": "new"}))
    store.see(made(4, spec={"plan": "old"}))

    found = store.get(KEY)
    assert found is not None
    assert found["spec"] == {"plan": "new"}
    assert "managedFields" not in found["metadata"]


def test_pod_templates_of_jobs_are_not_kept() -> None:
    cache = Cache()
    cache.jobs.see(made(1, spec={"completions": 4, "template": {"spec": {}}}, status={"ready": 4}))

    found = cache.jobs.get(KEY)
    assert found is not None
    assert found["spec"] == {"completions": 4}
    assert found["status"] == {"ready": 4}


def test_what_is_seen_again_as_it_was_is_as_quiet_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    cache = Cache()
    assert cache.quiet_for(KEY) == float("inf")
    cache.jobs.see(made(1, name="cartpole-head"))
    cache.jobs.see(made(2, name="cartpole-rollouts"))
    now = 103.0
    cache.jobs.see(made(2, name="cartpole-rollouts"))
    assert cache.quiet_for(KEY) == 3.0

    cache.jobs.see(made(3, name="cartpole-rollouts"))
    assert cache.quiet_for(KEY) == 0.0

    now = 105.0
    cache.jobs.forget(("team", "cartpole-rollouts"))
    assert cache.quiet_for(KEY) == 5.0


def test_late_news_of_a_deletion_does_not_drop_a_namesake() -> None:
    store = Store()
    store.see(made(1, uid="old"))
    store.see(made(3, uid="new"))
    store.forget(KEY, "old")
    assert store.get(KEY) is not None

    store.forget(KEY, "new")
    assert store.get(KEY) is None


def test_list_drops_what_is_gone_and_keeps_what_came_meanwhile() -> None:
    store = Store()
    store.see(made(1, name="gone"))
    store.see(made(2, name="stays"))
    store.see(made(3, name="touched"))
    before = store.versions()
    store.see(made(9, name="fresh"))
    store.see(made(10, name="touched"))

    changed = store.replace([made(2, name="stays"), made(8, name="unheard-of")], before)

    assert set(store.keys()) == {("team", name) for name in ("stays", "touched", "fresh", "unheard-of")}
    assert [key_of(each) for each in changed] == [("team", "gone"), ("team", "unheard-of")]


def test_watch_is_behind_until_it_has_brought_what_the_list_showed() -> None:
    store = Store()
    store.see(made(1), watched=True)
    store.replace([made(5)], store.versions())
    listed = store.versions()

    assert store.behind(listed) == {KEY}
    store.see(made(5), watched=True)
    assert store.behind(listed) == set()
    store.replace([made(7)], store.versions())
    store.forget(KEY)
    assert store.behind(listed) == set(), "what is gone needs no news"


def test_children_of_a_job_are_found_by_name_head_first() -> None:
    cache = Cache()
    for name in ("cartpole-workers", "cartpole-head", "cartpole-headless", "other-head"):
        cache.jobs.see(made(1, name=name))

    assert [child.name for child in cache.children(KEY)] == ["cartpole-head", "cartpole-workers"]


def test_child_leads_to_its_job_by_label() -> None:
    child = made(1, name="cartpole-head")
    assert job_key(child) is None
    child["metadata"]["labels"] = {"rltrain.dev/job": "cartpole"}
    assert job_key(child) == KEY

"""DD-PPO goes on with the ranks that are there and takes lost ones back."""

import json
import time

import pytest

from e2e.kube import Kube, progress
from e2e.manifests import example

pytestmark = pytest.mark.cluster


def test_training_goes_on_with_one_rank_within_60_s_and_regains_two(kube: Kube) -> None:
    name = "rank-lost"
    kube.apply(example("cartpole-ddppo", name, stop={"timeSeconds": 3000}))
    before = progress(kube.wait_steps(name, 5000, timeout=240))
    assert before["workersHealthy"] == 2

    # A pod that may not come back at once: the node takes no new pods while training must go on.
    node = kube.pods(name, "workers")[1]["spec"]["nodeName"]
    kube.kubectl("cordon", node)
    try:
        kube.delete("pod", kube.pods(name, "workers")[1]["metadata"]["name"], "--wait=false")
        lost_at = time.monotonic()

        def alone() -> dict[str, object] | None:
            now = progress(kube.job(name))
            return now if now["workersHealthy"] == 1 else None

        alone_at = kube.wait("one rank is left", alone, 60, name)

        def trained_alone() -> bool:
            now = progress(kube.job(name))
            return bool(now["workersHealthy"] == 1 and now["envSteps"] > alone_at["envSteps"])

        kube.wait("steps trained by the remaining rank", trained_alone, 60 - (time.monotonic() - lost_at), name)
    finally:
        kube.kubectl("uncordon", node)

    def whole() -> bool:
        return bool(progress(kube.job(name))["workersHealthy"] == 2)

    kube.wait("two ranks again", whole, 120, name)
    again = progress(kube.job(name))["envSteps"]
    kube.wait_steps(name, again + 3000, timeout=60)

    head = kube.pods(name, "head")[0]["metadata"]["name"]
    text = kube.kubectl("exec", head, "--", "cat", f"/data/{kube.job(name)['metadata']['uid']}/results.jsonl")
    results = [json.loads(line) for line in text.splitlines()]
    ranks = [result["num_healthy_workers"] for result in results]
    assert ranks[0] == 2
    assert 1 in ranks
    assert ranks[-1] == 2
    hashes = [result["rank_hashes"] for result in results if "rank_hashes" in result]
    assert hashes, "ranks compare their hashes"
    assert all(len(set(of_ranks)) == 1 for of_ranks in hashes), "ranks identical, before and after"
    assert any(len(of_ranks) == 2 for of_ranks in hashes[-3:])

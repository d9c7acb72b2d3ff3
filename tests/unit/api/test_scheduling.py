"""What a manifest may say about its place in the cluster."""

from typing import Any

import pytest
from pydantic import ValidationError

from operator_kit.manifests import job


@pytest.mark.parametrize(
    ("plan", "spec", "words"),
    [
        ("DQN", {"scheduling": {"gang": "None", "queueName": "team"}}, "nobody else keeps a queue"),
        ("DQN", {"scheduling": {"gang": "Kubernetes", "queueName": "team"}}, "nobody else keeps a queue"),
        ("DQN", {"scheduling": {"gang": "Kueue"}}, "gang Kueue needs queueName"),
        (
            "DQN",
            {
                "scheduling": {"queueName": "team"},
                "rollouts": {"replicas": 1, "maxReplicas": 2, "autoscale": True},
            },
            "leave out scheduling.queueName or rollouts.autoscale",
        ),
        (
            "DQN",
            {"scheduling": {"gang": "Kubernetes"}, "rollouts": {"replicas": 1, "maxReplicas": 2, "autoscale": True}},
            "leave out scheduling.gang or rollouts.autoscale",
        ),
        ("DQN", {"scheduling": {"topology": {"key": "zone"}}}, "pods that average gradients"),
        ("Apex", {"scheduling": {"topology": {"key": "zone"}}}, "pods that average gradients"),
        ("DQN", {"scheduling": {"queueName": "Team A"}}, "queueName"),
    ],
)
def test_what_contradicts_itself_is_refused_with_the_remedy(plan: str, spec: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        job(plan, **spec)


def test_volcanos_queue_leaves_rollouts_free() -> None:
    rollouts = {"replicas": 1, "maxReplicas": 2, "autoscale": True}
    made = job(scheduling={"gang": "Volcano", "queueName": "team"}, rollouts=rollouts)
    assert not made.spec.scheduling.in_kueue


def test_ranks_and_learners_that_average_may_be_placed() -> None:
    scheduling = {"topology": {"key": "zone"}}
    assert job("DDPPO", scheduling=scheduling).spec.scheduling.topology is not None
    assert job("Apex", scheduling=scheduling, learners={"replicas": 2}).spec.scheduling.topology is not None

"""What of a finished job is deleted, and when."""

import pytest

from operator_kit.seen import World, child, ended, pod
from rltrain_operator.plan import PodReport

COMPLETE = (("Complete", "CompletionsReached", ""),)
GIVEN_UP = (("Failed", "BackoffLimitExceeded", ""),)


@pytest.mark.parametrize(
    ("rules", "failed", "at_once", "in_the_end"),
    [
        ({}, False, ["rollouts"], ["rollouts"]),
        ({}, True, ["rollouts"], ["rollouts"]),
        ({"onSuccess": "All", "onFailure": "Nothing"}, False, ["rollouts"], ["head", "rollouts"]),
        ({"onSuccess": "All", "onFailure": "Nothing"}, True, [], []),
        ({"onSuccess": "Nothing", "onFailure": "All"}, False, [], []),
        ({"onSuccess": "Nothing", "onFailure": "All"}, True, ["rollouts"], ["head", "rollouts"]),
        ({"onFailure": "Everything"}, True, ["rollouts"], ["rollouts"]),
    ],
)
def test_by_its_rule_for_such_an_end_and_the_heads_job_only_once_the_end_is_written(
    rules: dict[str, str], failed: bool, at_once: list[str], in_the_end: list[str]
) -> None:
    world = World()
    world.visit()
    world.edit(runPolicy={"cleanUp": rules})
    head = child("head", conditions=GIVEN_UP if failed else COMPLETE)
    jobs = head, child("rollouts", active=1)
    plan = world.visit(*jobs, pods=PodReport(pods=(pod(state=ended(1 if failed else 0)),)))
    assert world.status["state"] == ("Failed" if failed else "Succeeded")
    assert [job.role for job in plan.delete] == at_once
    assert [job.role for job in world.visit(*jobs).delete] == in_the_end


def test_a_job_that_never_began_to_train_leaves_nothing_that_might_begin_later() -> None:
    world = World(runPolicy={"startupDeadlineSeconds": 60, "cleanUp": {"onFailure": "Nothing"}})
    world.visit()
    jobs = child("head", active=1), child("rollouts", active=1)
    assert world.visit(*jobs, after=100, pods=PodReport()).delete == jobs
    assert world.said("Failed")[1] == "StartupDeadlineExceeded"
    assert world.visit(*jobs).delete == jobs

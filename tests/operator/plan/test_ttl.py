"""A finished job is deleted once its time after the end is over, if it has one."""

import pytest

from operator_kit.seen import World, child, ended, pod
from rltrain_operator.plan import Plan, PodReport

COMPLETE = (("Complete", "CompletionsReached", ""),)


def finished(**policy: int) -> World:
    world = World(runPolicy=policy)
    world.visit()
    world.visit(child("head", conditions=COMPLETE), pods=PodReport(pods=(pod(state=ended(0)),)))
    assert world.status["state"] == "Succeeded"
    return world


def test_it_is_deleted_when_the_time_is_over_and_not_before() -> None:
    world = finished(ttlSecondsAfterFinished=100)
    plan = world.visit(after=40)
    assert not plan.remove
    assert plan.again_in == pytest.approx(60)
    plan = world.visit(after=60)
    assert plan.remove
    assert plan.status is None, "what was said of its end stays"


def test_without_a_time_it_stays() -> None:
    assert finished().visit(after=10**8) == Plan()


def test_the_time_can_be_given_and_changed_after_the_end_and_while_training() -> None:
    world = finished()
    world.edit(runPolicy={"ttlSecondsAfterFinished": 0})
    assert world.visit().remove
    running = World()
    jobs = child("head", active=1, ready=1), child("rollouts", active=1, ready=1)
    running.visit(*jobs)
    running.edit(runPolicy={"ttlSecondsAfterFinished": 5})
    plan = running.visit(*jobs, after=3600)
    assert not plan.remove
    assert running.said("Accepted") == ("True", "Accepted"), "it is no change of what the pods were made for"


@pytest.mark.parametrize("nonsense", [None, "soon", True, {}])
def test_what_is_no_time_deletes_nothing(nonsense: object) -> None:
    world = finished()
    world.edit(runPolicy={"ttlSecondsAfterFinished": nonsense})
    assert not world.visit(after=10**8).remove

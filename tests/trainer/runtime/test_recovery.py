"""Lost actors on a real Ray: who is made again, with what, and what is lost."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from rltrain.api.errors import TooManyRestarts
from rltrain.flow import ActorFailed, MetricsContext, Signal
from rltrain.flow.metrics import ENV_RESTARTS, EPISODES_DROPPED, FRAGMENTS_LOST, STEPS_SAMPLED
from rltrain.flow.ray_backend import RayBackend
from rltrain.flow.serial import SerialBackend
from rltrain.ops import Result
from rltrain.ops.ranks import Rank
from rltrain.rollout.worker import RolloutWorker
from rltrain.runtime.build import Training
from rltrain.runtime.ranks import RankGroup
from rltrain.state import content_hash
from trainer.runtime.runs import DDPPO, DQN, job


@pytest.fixture
def metrics() -> Iterator[MetricsContext]:
    with MetricsContext().active() as context:
        yield context


def sampled(metrics: MetricsContext, steps: int) -> bool:
    return metrics.counters[STEPS_SAMPLED] >= steps


def process_of(worker: RolloutWorker) -> int:
    return os.getpid()


def weights_of(worker: RolloutWorker) -> str:
    return content_hash(worker.get_weights())


def turn_until(training: Training, condition: Callable[[], object]) -> list[Result]:
    """Pull the plan until something holds."""
    results: list[Result] = []
    while not condition():
        item = training.flow.tick(1.0)
        if not isinstance(item, Signal):
            results.append(item)
    return results


def gather(training: Training) -> None:
    while len(training.workers.actors()) < training.workers.wanted:
        training.workers.refresh()
        if training.workers.pending():
            training.workers.backend.wait(training.workers.pending(), 1.0)


def kill_process(training: Training, index: int) -> None:
    actor = next(actor for actor in training.workers.actors() if actor.index == index)
    os.kill(training.workers.backend.result(actor.apply(process_of)), signal.SIGKILL)


def test_lost_rollout_worker_is_made_again_with_its_index_and_the_current_weights(
    ray_backend: RayBackend, metrics: MetricsContext
) -> None:
    training = Training(job(DQN, rollouts={"replicas": 2}), ray_backend, metrics)
    gather(training)
    turn_until(training, lambda: metrics.counters[STEPS_SAMPLED] >= 300)
    before = {actor.index: actor for actor in training.workers.actors()}
    kill_process(training, 2)
    turn_until(training, lambda: metrics.counters[FRAGMENTS_LOST])
    assert [actor.index for actor in training.workers.actors()] == [1], "the other goes on meanwhile"
    turn_until(training, lambda: len(training.workers.actors()) == 2)
    after = {actor.index: actor for actor in training.workers.actors()}
    assert after[1] is before[1]
    assert after[2] is not before[2]
    assert metrics.counters[FRAGMENTS_LOST] == 1
    # It samples with what the learner has now, not with what it was made with.
    call = training.workers.sampling(after[2])
    ray_backend.result(after[2].apply(call.function, *call.args))
    assert ray_backend.result(after[2].apply(weights_of)) == weights_of(training.local)


@pytest.mark.parametrize("kind", ["raise", "hang"])
@pytest.mark.parametrize("spec", [{**DQN, "rollouts": {"replicas": 2}}, DDPPO], ids=["DQN", "DDPPO"])
def test_failing_environments_are_made_again_inside_their_actors(
    spec: dict[str, Any], kind: str, ray_backend: RayBackend, metrics: MetricsContext
) -> None:
    kwargs = {"kind": kind, "step": 5, "worker": 2, "every": 3}
    env: dict[str, Any] = {"id": "probes.envs:Bad", "kwargs": kwargs, "maxRestarts": 1000}
    if kind == "hang":
        env["stepTimeoutSeconds"] = 3
    training = Training(job({**spec, "env": env}), ray_backend, metrics)
    gather(training)
    before = list(training.workers.actors())
    turn_until(training, lambda: metrics.counters[ENV_RESTARTS])
    assert metrics.counters[EPISODES_DROPPED] == metrics.counters[ENV_RESTARTS]
    assert list(training.workers.actors()) == before
    assert metrics.counters[FRAGMENTS_LOST] == 0


def test_environments_that_fail_too_often_end_training_from_their_actor(
    ray_backend: RayBackend, metrics: MetricsContext
) -> None:
    env = {"id": "probes.envs:Bad", "kwargs": {"kind": "reward", "step": 5, "worker": 2}, "maxRestarts": 3}
    training = Training(job({**DDPPO, "env": env}), ray_backend, metrics)
    words = r"failed in worker 2, environment [01], step 4 of its episode .*reward isn't finite; .* failed 4 times"
    with pytest.raises(TooManyRestarts, match=words):  # noqa: PT012 - wherever it is noticed
        gather(training)
        turn_until(training, lambda: metrics.counters[STEPS_SAMPLED] > 10_000)


class KillItselfAt:
    """Before the all-reduce of its n-th minibatch, rank `index` is gone."""

    def __init__(self, index: int, minibatch: int) -> None:
        self.index = index
        self.minibatch = minibatch

    def __call__(self, rank: Rank) -> None:
        if rank.spec.index != self.index:
            return
        average, seen = rank.average, 0
        assert average is not None

        def deadly(tensor: Any) -> Any:
            nonlocal seen
            seen += 1
            if seen == self.minibatch:
                os.kill(os.getpid(), signal.SIGKILL)
            return average(tensor)

        rank.average = deadly


def whole_of(rank: Rank) -> tuple[int, str]:
    return rank.whole[0], content_hash(rank.whole[1])


def learned_of(rank: Rank) -> str:
    return content_hash(rank.policy.learned_state())


def test_rank_killed_before_the_allreduce_is_noticed_and_training_goes_on_from_the_last_synchronised_step(
    ray_backend: RayBackend, metrics: MetricsContext
) -> None:
    training = Training(job(DDPPO), ray_backend, metrics)
    group = training.workers
    assert isinstance(group, RankGroup)
    gather(training)
    turn_until(training, lambda: metrics.counters[STEPS_SAMPLED] >= 240)
    steps = metrics.counters[STEPS_SAMPLED]
    synchronised = {ray_backend.result(actor.apply(whole_of)) for actor in group.actors()}
    assert len(synchronised) == 1
    former = [ray_backend.result(actor.apply(process_of)) for actor in group.actors()]
    for actor in group.actors():
        ray_backend.result(actor.apply(KillItselfAt(index=2, minibatch=3)))

    begun = time.monotonic()
    turn_until(training, lambda: metrics.counters[FRAGMENTS_LOST])
    noticed = time.monotonic() - begun
    assert noticed < 10, "far below the collective's own timeout of 600 s"
    assert metrics.counters[FRAGMENTS_LOST] == 2, "both ranks' fragments"
    assert metrics.counters[STEPS_SAMPLED] == steps, "what was not learnt from is not counted"
    assert not group.actors(), "the group is torn down as a whole"

    gather(training)
    assert {ray_backend.result(actor.apply(whole_of)) for actor in group.actors()} == synchronised
    assert {ray_backend.result(actor.apply(learned_of)) for actor in group.actors()} == {synchronised.pop()[1]}
    now = [ray_backend.result(actor.apply(process_of)) for actor in group.actors()]
    assert not set(former) & set(now)
    results = turn_until(training, lambda: metrics.counters[STEPS_SAMPLED] >= steps + 160)
    assert results[-1].num_healthy_workers == 2
    assert len({ray_backend.result(actor.apply(learned_of)) for actor in group.actors()}) == 1


def test_the_only_survivor_hands_over_its_state_though_its_collective_failed(metrics: MetricsContext) -> None:
    backend = SerialBackend()
    training = Training(job(DDPPO), backend, metrics)
    group = training.workers
    assert isinstance(group, RankGroup)
    gather(training)
    turn_until(training, lambda: metrics.counters[STEPS_SAMPLED] >= 240)
    survivor, dead = group.actors()
    synchronised = backend.result(survivor.apply(whole_of))
    assert synchronised[0] == 3
    backend.kill(dead)
    # As over gloo: the survivor's broken collective is seen before the other's death.
    group.failed([ActorFailed(survivor, "all-reduce broke off")])
    gather(training)
    assert [backend.result(actor.apply(whole_of)) for actor in group.actors()] == [synchronised] * 2


def test_two_gloo_ranks_are_identical_and_learn_what_the_serial_ones_learn(
    ray_backend: RayBackend, metrics: MetricsContext
) -> None:
    learned: dict[str, set[str]] = {}
    for name, backend in (("ray", ray_backend), ("serial", SerialBackend())):
        with MetricsContext().active() as own:
            training = Training(job(DDPPO), backend, own)
            gather(training)
            results = turn_until(training, partial(sampled, own, 160))
            assert own.counters["num_env_steps_trained"] == 160, "the steps of all ranks"
            hashes = next(result.rank_hashes for result in results if result.rank_hashes)
            assert len(hashes) == 2
            assert len(set(hashes)) == 1
            learned[name] = {backend.result(actor.apply(learned_of)) for actor in training.workers.actors()}
    assert learned["ray"] == learned["serial"]

"""Evaluation during training: which weights are played, by whom, how often, and what becomes of it after a death."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rltrain.api.errors import EnvironmentFailed
from rltrain.flow import Actor, MetricsContext, Signal
from rltrain.flow.metrics import STEPS_SAMPLED
from rltrain.flow.ray_backend import RayBackend
from rltrain.flow.serial import SerialBackend
from rltrain.rollout.evaluation import Scores, evaluate
from rltrain.rollout.worker import RolloutWorker
from rltrain.runtime.build import Training
from rltrain.runtime.checkpoint_store import CheckpointStore
from rltrain.runtime.evaluation import trained_worker
from rltrain.runtime.evaluators import Evaluation, Evaluators
from rltrain.state import content_hash
from trainer.runtime.runs import APEX, CQL, DDPPO, DQN, job, marker, results, run_serially

EVALUATED = {"evaluation_interval": 1, "evaluation_num_episodes": 4}
RANKS_ALONE = {**DDPPO["config"], "keep_local_weights_in_sync": False}


@pytest.fixture
def metrics() -> Iterator[MetricsContext]:
    with MetricsContext().active() as context:
        yield context


def evaluations(path: Path) -> list[dict[str, Any]]:
    return [line["evaluation"] for line in results(path) if "evaluation" in line]


@pytest.mark.parametrize(
    "spec",
    [DQN, {**APEX, "learners": {"replicas": 1}}, {**DDPPO, "config": RANKS_ALONE}, CQL],
    ids=["DQN", "Apex", "DDPPO", "CQL"],
)
def test_the_weights_evaluated_are_those_of_the_steps_told_played_greedily_with_fresh_seeds(
    spec: dict[str, Any], metrics: MetricsContext, tmp_path: Path
) -> None:
    watched = Watched(SerialBackend(), metrics, spec)
    for number in range(1, 4):
        watched.report()
        parts = watched.training.get_state()
        summary = watched.training.summary(1, parts)
        saved = CheckpointStore(tmp_path).save(watched.training.identity, summary, parts)
        worker, _ = trained_worker(saved.path)
        records = evaluate(worker.policy, worker.spec.env, 4, seed=job(spec).spec.seed + number)
        watched.begin()
        assert watched.end() == Evaluation(Scores.of(records), summary.env_steps, summary.trained_steps)
        evaluator = watched.evaluators._live[1]
        played = watched.evaluators._crew.backend.result(evaluator.apply(network_of))
        assert played == network_of(worker)


def test_an_evaluation_comes_with_every_so_many_reports_and_the_last_one_is_in_the_outcome(tmp_path: Path) -> None:
    config = {**EVALUATED, "evaluation_interval": 2}
    outcome = run_serially(job(DQN, config=config, stop={"envSteps": 800}), tmp_path / "run")
    with_one = ["evaluation" in line for line in results(tmp_path / "run")]
    assert with_one == [False, True, False, True, False, True]  # the last line is the end's
    assert outcome.evaluation_return_mean == evaluations(tmp_path / "run")[-1]["episode_return_mean"]


@pytest.mark.parametrize("workers", [1, 3, 9])
def test_who_plays_makes_no_difference(workers: int, tmp_path: Path) -> None:
    for name, count in (("driver", 0), ("workers", workers)):
        run_serially(job(DQN, config={**EVALUATED, "evaluation_num_workers": count}), tmp_path / name)
    assert evaluations(tmp_path / "workers") == evaluations(tmp_path / "driver") != []


def test_training_is_the_same_with_evaluations_as_without(tmp_path: Path) -> None:
    hashes = [
        marker(run_serially(job(DQN, config=config), tmp_path / name).checkpoint)["hashes"]
        for name, config in (("without", {}), ("with", EVALUATED))
    ]
    assert hashes[0] == hashes[1]


def test_returns_of_evaluations_and_of_training_end_a_run_by_criteria_of_their_own(tmp_path: Path) -> None:
    always = job({**CQL, "stop": {"evaluationReturnMean": -5000}})
    outcome = run_serially(always, tmp_path / "cql")
    assert (outcome.stop_reason, outcome.trained_steps) == ("evaluation_return_mean", 800)
    never = job(DQN, config=EVALUATED, stop={"evaluationReturnMean": 501.0})
    assert run_serially(never, tmp_path / "dqn").stop_reason == "env_steps"
    assert {line["episode_return_mean"] for line in results(tmp_path / "cql")} == {None}


def network_of(worker: RolloutWorker) -> str:
    return content_hash(worker.policy.learned_state()["weights"])


class Watched:
    """A training on a back end, with its evaluators."""

    def __init__(self, backend: Any, metrics: MetricsContext, spec: dict[str, Any] = DQN, **config: Any) -> None:
        self.training = Training(job(spec, config={**EVALUATED, **config}), backend, metrics)
        self.backend, self.metrics = backend, metrics
        assert self.training.evaluators is not None
        self.evaluators: Evaluators = self.training.evaluators

    def report(self) -> None:
        """Go on until the next one."""
        while isinstance(self.training.flow.tick(1.0), Signal):
            pass

    def begin(self) -> list[Actor]:
        """An evaluation, once as many are there as are wanted, who are returned."""
        while not (self.evaluators.due() and len(self.evaluators._live) == self.evaluators._crew.wanted):
            time.sleep(0.01)
        weights = self.training.newest_weights()
        assert weights is not None
        self.evaluators.begin(weights)
        return list(self.evaluators._live.values())

    def end(self) -> Evaluation:
        while (evaluation := self.evaluators.poll()) is None:
            self.backend.wait(self.evaluators.pending(), 1.0)
        return evaluation


def process_of(worker: RolloutWorker) -> int:
    return os.getpid()


def wait_for(worker: RolloutWorker, path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)


def test_training_goes_on_while_workers_evaluate_and_one_that_is_killed_meanwhile_is_made_again(
    ray_backend: RayBackend, metrics: MetricsContext, tmp_path: Path
) -> None:
    watched = Watched(ray_backend, metrics, evaluation_num_workers=2)
    watched.report()
    actors = watched.begin()
    began_at = metrics.counters[STEPS_SAMPLED]
    for actor in actors:
        actor.apply(wait_for, tmp_path / "go")  # so that nothing is played before
    assert watched.evaluators.poll() is None
    watched.report()
    assert watched.evaluators.poll() is None
    assert not watched.evaluators.due(), "one at a time"
    os.kill(ray_backend.result(actors[1].control(process_of)), signal.SIGKILL)
    (tmp_path / "go").touch()
    evaluation = watched.end()
    assert evaluation.env_steps == began_at < metrics.counters[STEPS_SAMPLED]
    assert metrics.counters["num_evaluation_workers_lost"] == 1
    with MetricsContext().active() as alone:
        serial = Watched(SerialBackend(), alone)
        serial.report()
        serial.begin()
        assert serial.end() == evaluation, "nobody's episodes are missing, and none is there twice"
    assert sorted(actor.index for actor in watched.begin()) == [1, 2]


def test_losses_never_end_training_but_an_environment_that_always_fails_does(
    metrics: MetricsContext, tmp_path: Path
) -> None:
    backend = SerialBackend()
    watched = Watched(backend, metrics, evaluation_num_workers=1)
    watched.report()
    for _ in range(12):
        (actor,) = watched.begin()
        backend.kill(actor)
        watched.end()
        watched.report()
    assert metrics.counters["num_evaluation_workers_lost"] == 12
    folder = {"folder": str(tmp_path), "times": 1000}
    flaky = job(CQL, env={"id": "trainer.runtime.flaky:FlakyPendulum", "kwargs": folder})
    with pytest.raises(EnvironmentFailed, match="the game crashed"):
        run_serially(flaky, tmp_path / "run")
    assert (tmp_path / "crashes").stat().st_size == 3


def test_an_evaluation_that_fails_once_is_played_again(tmp_path: Path) -> None:
    folder = {"folder": str(tmp_path), "times": 1}
    flaky = job(CQL, env={"id": "trainer.runtime.flaky:FlakyPendulum", "kwargs": folder})
    run_serially(flaky, tmp_path / "run")
    assert results(tmp_path / "run")[-1]["counters"]["num_evaluation_worker_failures"] == 1
    assert len(evaluations(tmp_path / "run")) == 2


def test_an_evaluation_that_hangs_ends_at_the_limit_of_a_step_and_training_where_all_do(tmp_path: Path) -> None:
    """In this process too, where plans that sample nothing evaluate."""
    env = {"id": "trainer.runtime.flaky:HangingPendulum", "stepTimeoutSeconds": 1.0}
    with pytest.raises(EnvironmentFailed, match=r"no answer within the time limit \(1 s a step\)"):
        run_serially(job(CQL, env=env), tmp_path / "run")
    assert results(tmp_path / "run"), "it has been trained until then"

"""A running job's workers become more and fewer: who comes, who goes, and what those that stay do differently."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rltrain.api.resolve import resolved_yaml
from rltrain.flow import ActorLost, Backend, MetricsContext
from rltrain.flow.metrics import FRAGMENTS_LOST, STEPS_SAMPLED
from rltrain.flow.serial import SerialBackend
from rltrain.ops import LowestEpsilons
from rltrain.ops.ranks import Rank
from rltrain.policies.apex import worker_epsilon
from rltrain.rollout.worker import RolloutWorker
from rltrain.runtime.autoscale import Load, better
from rltrain.runtime.build import Training
from rltrain.runtime.edits import with_edits
from rltrain.runtime.mounted import MountedManifest
from rltrain.runtime.rundir import RunDirectory
from rltrain.runtime.scaling import Scaling
from rltrain.state import content_hash
from trainer.runtime.runs import APEX, DDPPO, DQN, job, marker, results, run_serially

LOSSES = (FRAGMENTS_LOST, "num_workers_lost", "num_worker_failures")


@pytest.fixture
def metrics() -> Iterator[MetricsContext]:
    with MetricsContext().active() as context:
        yield context


class Clock:
    """Moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def turn_until(training: Training, condition: Callable[[], object]) -> None:
    while not condition():
        training.flow.tick(1.0)


def steps_more(training: Training, steps: int) -> None:
    counters = training.metrics.counters
    enough = counters[STEPS_SAMPLED] + steps
    turn_until(training, lambda: counters[STEPS_SAMPLED] >= enough)


def gather(training: Training) -> None:
    workers = training.workers
    while len(workers.actors()) < workers.wanted:
        workers.refresh()
        if workers.pending():
            workers.backend.wait(workers.pending(), 1.0)
    assert [actor.index for actor in workers.actors()] == list(range(1, workers.wanted + 1))


def of_each(training: Training, function: Callable[[Any], Any]) -> list[Any]:
    backend = training.workers.backend
    return [backend.result(actor.apply(function)) for actor in training.workers.actors()]


def epsilon_of(worker: RolloutWorker) -> float:
    return worker.policy.exploration_state()["epsilon"]


def weights_of(worker: RolloutWorker) -> str:
    return content_hash(worker.get_weights())


def whole_of(rank: Rank) -> tuple[int, str]:
    return rank.whole[0], content_hash(rank.policy.learned_state())


def lost(metrics: MetricsContext) -> list[int]:
    return [metrics.counters[name] for name in LOSSES]


def test_workers_that_come_and_go_leave_everyone_with_the_epsilon_of_the_new_number(metrics: MetricsContext) -> None:
    training = Training(job(APEX, rollouts={"replicas": 2}), SerialBackend(), metrics)
    gather(training)
    steps_more(training, 200)
    selected = LowestEpsilons(training.workers)
    for wanted, reported in ((5, [4, 5]), (3, [3]), (4, [3, 4])):
        training.resize(job(APEX, rollouts={"replicas": wanted}))
        gather(training)
        steps_more(training, 20 * 2 * wanted)  # a fragment of each
        assert of_each(training, epsilon_of) == [worker_epsilon(index, wanted) for index in range(1, wanted + 1)]
        assert [index for index in range(7) if index in selected] == reported
    assert lost(metrics) == [0, 0, 0]


def test_a_new_worker_begins_with_the_weights_that_the_others_have(metrics: MetricsContext) -> None:
    training = Training(job(DQN, rollouts={"replicas": 1}), SerialBackend(), metrics)
    gather(training)
    steps_more(training, 300)
    training.resize(job(DQN, rollouts={"replicas": 3}))
    gather(training)
    steps_more(training, 1)
    assert len(set(of_each(training, weights_of))) == 1


@pytest.mark.parametrize("backend", ["serial", "ray"])
def test_what_a_leaving_worker_owes_is_dropped_and_nobody_misses_it(
    backend: str, metrics: MetricsContext, request: pytest.FixtureRequest
) -> None:
    made: Backend = SerialBackend() if backend == "serial" else request.getfixturevalue("ray_backend")
    training = Training(job(APEX, rollouts={"replicas": 3}), made, metrics)
    gather(training)
    steps_more(training, 200)
    training.resize(job(APEX, rollouts={"replicas": 1}))
    steps_more(training, 200)
    assert [actor.index for actor in training.workers.actors()] == [1]
    assert not training.workers.pending()
    training.resize(job(APEX, rollouts={"replicas": 2}))
    gather(training)
    steps_more(training, 100)
    assert lost(metrics) == [0, 0, 0]
    training.close()


def test_a_worker_whose_machine_is_not_there_yet_keeps_nobody_waiting(metrics: MetricsContext) -> None:
    backend = SerialBackend()
    training = Training(job(DQN, rollouts={"replicas": 1}), backend, metrics)
    gather(training)
    wait = backend.wait
    backend.wait = lambda futures, timeout=None: []  # type: ignore[method-assign]
    training.resize(job(DQN, rollouts={"replicas": 2}))
    steps_more(training, 100)
    assert (len(training.workers.actors()), training.workers.wanted) == (1, 2)
    backend.wait = wait  # type: ignore[method-assign]
    gather(training)


@pytest.mark.parametrize("backend", ["serial", "ray"])
def test_ranks_form_their_group_anew_with_the_state_that_they_have(
    backend: str, metrics: MetricsContext, request: pytest.FixtureRequest
) -> None:
    made: Backend = SerialBackend() if backend == "serial" else request.getfixturevalue("ray_backend")
    training = Training(job(DDPPO, workers={"replicas": 1}), made, metrics)
    gather(training)
    steps_more(training, 80)
    for wanted in (3, 2):
        (whole, *others) = of_each(training, whole_of)
        assert all(other == whole for other in others)
        training.resize(job(DDPPO, workers={"replicas": wanted}))
        gather(training)
        assert of_each(training, whole_of) == [whole] * wanted, "the former ranks' state, on all of them"
        before = metrics.counters[STEPS_SAMPLED]
        steps_more(training, 1)
        assert metrics.counters[STEPS_SAMPLED] - before == wanted * 40, "each rank's fragment is as large as before"
    assert lost(metrics) == [0, 0, 0]


def test_ranks_below_their_minimum_wait_for_the_others(metrics: MetricsContext) -> None:
    training = Training(job(DDPPO, workers={"replicas": 2}), SerialBackend(), metrics)
    gather(training)
    steps_more(training, 80)
    training.resize(job(DDPPO, workers={"replicas": 3, "minReplicas": 3}))
    training.workers.backend.kill(training.workers.actors()[1])
    training.flow.tick(0.0)
    assert not training.workers.actors(), "the group is torn down"
    gather(training)


@pytest.mark.parametrize(
    ("spec", "role", "looks"), [(APEX, "rollouts", 60), (DQN, "rollouts", 60), (DDPPO, "workers", 4)]
)
def test_a_resumed_run_has_as_many_workers_as_its_manifest_says_then(
    spec: dict[str, Any], role: str, looks: int, tmp_path: Path
) -> None:
    path, stop = tmp_path / "run", {"envSteps": 2000}
    for turn, wanted in enumerate((3, 2, 4)):
        manifest = job(spec, stop=stop, **{role: {"replicas": wanted}})
        part = run_serially(manifest, path, resume=turn > 0, looks=looks)
        assert part.state == "Interrupted"
    saved = marker(part.checkpoint)["hashes"]
    ended = run_serially(job(spec, stop=stop, **{role: {"replicas": 2}}), path, resume=True)
    assert ended.state == "Succeeded"
    lines = results(path)
    assert [line["resumed"]["hashes"] for line in lines if "resumed" in line][-1] == saved
    assert (lines[-1]["num_healthy_workers"], lines[-1]["num_wanted_workers"]) == (2, 2)
    if spec is APEX:
        infos = [line["info"]["exploration_infos"] for line in lines if "exploration_infos" in line["info"]]
        assert [each["epsilon"] for each in infos[-1]] == [0.0, worker_epsilon(1, 2), worker_epsilon(2, 2)]


def test_a_checkpoint_of_more_workers_leaves_nothing_for_those_that_come_later(metrics: MetricsContext) -> None:
    many = Training(job(APEX, rollouts={"replicas": 3}), SerialBackend(), metrics)
    gather(many)
    steps_more(many, 200)
    state = many.workers.get_state()
    few = Training(job(APEX, rollouts={"replicas": 2}), SerialBackend(), metrics)
    few.workers.set_state(state)
    few.local.policy.set_weights({name: value + 1 for name, value in few.local.get_weights().items()})
    few.workers.publish_weights(only_new=True)
    few.resize(job(APEX, rollouts={"replicas": 3}))
    gather(few)
    steps_more(few, 60)
    assert of_each(few, weights_of)[2] == weights_of(few.local), "the newest, not the checkpoint's"


class Edited:
    """A training whose mounted manifest is edited."""

    def __init__(self, folder: Path, metrics: MetricsContext, spec: dict[str, Any], **changes: Any) -> None:
        self.clock = Clock()
        self.spec = spec
        self.path = folder / "job.yaml"
        started = job(spec, **changes)
        self.path.write_text(resolved_yaml(started))
        self.directory = RunDirectory(folder / "run")
        self.directory.open()
        self.training = Training(started, SerialBackend(), metrics)
        manifest = MountedManifest(self.path, self.clock)
        self.scaling = Scaling(started, self.directory, manifest, self.clock)
        gather(self.training)

    def write(self, text: str) -> None:
        """As the kubelet does: a new file in the place of the old one."""
        new = self.path.with_suffix(".new")
        new.write_text(text)
        new.replace(self.path)
        self.clock.now += 1.0
        self.scaling.follow(self.training)

    def edit(self, **changes: Any) -> None:
        self.write(resolved_yaml(job(self.spec, **changes)))

    @property
    def wanted(self) -> int:
        return self.training.workers.wanted


def test_the_mounted_manifest_is_followed_in_its_counts_alone(tmp_path: Path, metrics: MetricsContext) -> None:
    edited = Edited(tmp_path, metrics, DQN, rollouts={"replicas": 1})
    edited.edit(rollouts={"replicas": 3, "maxReplicas": 4}, config={"gamma": 0.5}, seed=9)
    assert edited.wanted == 3
    followed = edited.training.job.spec
    assert (followed.config.gamma, followed.seed) == (job(DQN).spec.config.gamma, 3)
    assert "replicas: 3" in (tmp_path / "run" / "manifest.yaml").read_text()


def test_a_manifest_that_is_no_good_changes_nothing_and_the_next_good_one_does(
    tmp_path: Path, metrics: MetricsContext, caplog: pytest.LogCaptureFixture
) -> None:
    edited = Edited(tmp_path, metrics, DQN, rollouts={"replicas": 2})
    edited.write("spec: {rollouts: {replicas: many}}")
    assert edited.wanted == 2
    assert "no good" in caplog.text
    edited.path.unlink()
    edited.clock.now += 1.0
    edited.scaling.follow(edited.training)
    edited.edit(rollouts={"replicas": 1})
    assert edited.wanted == 1


def test_between_none_and_some_workers_the_driver_says_that_it_must_be_started_anew(
    tmp_path: Path, metrics: MetricsContext, caplog: pytest.LogCaptureFixture
) -> None:
    edited = Edited(tmp_path, metrics, DQN, rollouts={"replicas": 2})
    edited.edit(rollouts={"replicas": 0})
    assert edited.wanted == 2
    assert "from 2 to 0 workers" in caplog.text
    assert "next start" in caplog.text


def test_the_file_is_looked_at_every_second_at_most(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "job.yaml"
    path.write_text(resolved_yaml(job(DQN)))
    manifest = MountedManifest(path, clock)
    path.write_text(resolved_yaml(job(DQN, rollouts={"replicas": 12})))
    clock.now = 0.9
    assert manifest.changed() is None
    clock.now = 1.0
    assert manifest.changed() is not None
    clock.now = 2.0
    assert manifest.changed() is None


def test_ranks_take_their_minimum_from_the_edit_too() -> None:
    edited = with_edits(job(DDPPO), job(DDPPO, workers={"replicas": 5, "minReplicas": 4}, seed=8))
    assert edited == job(DDPPO, workers={"replicas": 5, "minReplicas": 4})


def test_an_edited_deadline_holds_from_then_on(tmp_path: Path, metrics: MetricsContext) -> None:
    edited = Edited(tmp_path, metrics, DQN, rollouts={"replicas": 2})
    edited.edit(rollouts={"replicas": 2}, runPolicy={"activeDeadlineSeconds": 60, "maxRestarts": 9})
    policy = edited.scaling.job.spec.run_policy
    assert (policy.active_deadline_seconds, policy.max_restarts) == (60, 3), "the latter is the operator's"
    assert edited.wanted == 2


AUTO = {"replicas": 2, "minReplicas": 1, "maxReplicas": 3, "autoscale": True}


@pytest.mark.parametrize(
    ("workers", "sampling", "waiting", "proposed"),
    [
        (2, 110, 40, 3),  # both sample nearly all the time, and the learner waits for them
        (3, 170, 40, 3),  # so do three, but more there may not be
        (2, 110, 5, 2),  # the learner has enough, and neither could be spared
        (2, 40, 5, 1),  # one could do the work of both
        (1, 10, 0, 1),  # fewer there may not be
        (2, 30, 40, 2),  # the learner waits, but not for a lack of workers
    ],
)
def test_after_a_minute_another_number_is_proposed_where_it_pays(
    workers: int, sampling: float, waiting: float, proposed: int, tmp_path: Path, metrics: MetricsContext
) -> None:
    edited = Edited(tmp_path, metrics, APEX, rollouts={**AUTO, "replicas": workers})
    measure = partial(edited.scaling.measure, edited.training)
    metrics.timer("sample").push(1000.0)  # before the window
    measure()
    metrics.timer("sample").push(sampling)
    metrics.timer("learner_dequeue").push(waiting)
    edited.clock.now += 59.0
    measure()
    assert edited.scaling.proposed is None, "not yet"
    edited.clock.now += 1.0
    measure()
    assert edited.scaling.proposed == proposed


def test_every_number_is_measured_by_itself_and_stands_until_then(tmp_path: Path, metrics: MetricsContext) -> None:
    edited = Edited(tmp_path, metrics, APEX, rollouts=AUTO)
    measure = partial(edited.scaling.measure, edited.training)
    measure()
    metrics.timer("sample").push(118.0)
    metrics.timer("learner_dequeue").push(30.0)
    edited.clock.now += 60.0
    measure()
    assert edited.scaling.proposed == 3
    edited.edit(rollouts={**AUTO, "replicas": 3})
    edited.clock.now += 60.0
    measure()  # the third isn't there yet
    gather(edited.training)
    measure()
    edited.clock.now += 59.0
    measure()
    assert edited.scaling.proposed == 3, "nothing has been measured with three"
    edited.clock.now += 1.0
    measure()
    assert edited.scaling.proposed == 2, "which have sampled nothing"
    edited.edit(rollouts={"replicas": 3})
    measure()
    assert edited.scaling.proposed is None


def test_how_long_a_number_is_measured_may_be_said(
    tmp_path: Path, metrics: MetricsContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLTRAIN_AUTOSCALE_SECONDS", "5")
    edited = Edited(tmp_path, metrics, APEX, rollouts=AUTO)
    edited.scaling.measure(edited.training)
    for seconds, proposed in ((4.0, None), (1.0, 1)):
        edited.clock.now += seconds
        edited.scaling.measure(edited.training)
        assert edited.scaling.proposed == proposed


def test_time_with_a_lost_worker_measures_nothing(tmp_path: Path, metrics: MetricsContext) -> None:
    edited = Edited(tmp_path, metrics, APEX, rollouts=AUTO)
    workers = edited.training.workers
    edited.scaling.measure(edited.training)
    edited.clock.now += 30.0
    workers.failed([ActorLost(workers.actors()[0], "gone")])
    edited.scaling.measure(edited.training)
    gather(edited.training)
    edited.clock.now += 30.0
    edited.scaling.measure(edited.training)
    assert edited.scaling.proposed is None


@pytest.mark.parametrize("demand", [0.4, 1.0, 1.3, 2.0, 3.7, 9.0])
@pytest.mark.parametrize("begin", [1, 4, 20])
def test_the_number_settles_for_a_learner_beside_its_workers(demand: float, begin: int) -> None:
    """The learner has use for what `demand` workers sample."""
    seen = [begin]
    for _ in range(40):
        workers = seen[-1]
        load = Load(waiting=max(0.0, 1 - workers / demand), sampling=min(1.0, demand / workers))
        seen.append(max(1, workers + better(load, workers, alternating=False)))
    assert len(set(seen[-10:])) == 1
    assert 0.8 * demand <= seen[-1] <= demand / 0.9 + 1


@pytest.mark.parametrize("learning", [0.01, 0.2, 0.7, 3.0, 20.0])
@pytest.mark.parametrize("begin", [1, 3, 12])
def test_the_number_settles_where_sampling_and_learning_alternate(learning: float, begin: int) -> None:
    """Learning from a worker's fragment takes `learning` times as long as sampling it."""
    seen = [begin]
    for _ in range(200):
        workers = seen[-1]
        share = 1 / (1 + workers * learning)
        seen.append(max(1, workers + better(Load(share, share), workers, alternating=True)))
    assert len(set(seen[-10:])) == 1

"""Environments in processes: the same transitions, and an end to whatever hangs or dies."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from rltrain.api.config import DQNConfig
from rltrain.api.env import EnvSpec
from rltrain.api.errors import EnvironmentFailed, UnknownEnvironment
from rltrain.rollout.collector import Collector
from rltrain.rollout.faults import Tolerance
from rltrain.rollout.subprocesses import ProcessEnvs
from rltrain.rollout.vector import EnvList
from rltrain.rollout.worker import RolloutWorker, WorkerSpec
from trainer.rollout.test_collector import random_actions
from trainer.rollout.test_faults import WORKER, bad, check_rows
from trainer.runtime.processes import alive

ONE_BAD = 7
"""Seed with which environment 1 of two is bad in its first episode, and neither is again for a while."""
CARTPOLE = EnvSpec(id="CartPole-v1")


@contextmanager
def processes(spec: EnvSpec, count: int, record: bool = False, seed: int = 5) -> Iterator[ProcessEnvs]:
    envs = ProcessEnvs(spec, count, seed=seed, worker=WORKER, record=record)
    try:
        yield envs
    finally:
        envs.close()


def test_processes_give_what_a_list_gives_and_take_up_its_states() -> None:
    own = EnvList(CARTPOLE, 2, seed=5, worker=WORKER, record=True)
    rng = np.random.default_rng(0)
    with processes(CARTPOLE, 2, record=True) as other:
        for envs in (own, other):
            envs.reset()
        for step in range(120):
            if step == 60:
                state = other.get_state()
                other.set_state(own.get_state())
                own.set_state(state)
            np.testing.assert_array_equal(own.obs, other.obs)
            actions = rng.integers(2, size=2)
            for mine, its in zip(own.step(actions), other.step(actions), strict=True):
                np.testing.assert_array_equal(mine, its)
        assert not own.faults
        assert not other.faults
        assert other.get_state()["episodes"] == own.get_state()["episodes"] > [3, 3]


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        ("raise", "RuntimeError", "RuntimeError: this probe raises"),
        ("reward", "reward", "its reward isn't finite"),
        ("die", "process", "its process ended with exit code 7"),
        ("hang", "time limit", r"there is no answer within the time limit \(3 s a step\)"),
    ],
)
def test_one_that_fails_is_replaced_whatever_it_does_and_the_others_go_on(kind: str, name: str, words: str) -> None:
    spec = bad(kind, 3, every=2).model_copy(update={"step_timeout_seconds": 3.0})
    with processes(spec, 2, seed=ONE_BAD) as envs:
        first = [process._process.pid for process in envs._processes]
        each = Collector(envs, random_actions(2), WORKER, tolerance=Tolerance(9, 999))
        before = None
        for size in (10, 7, 5):
            batch = each.collect(size)
            assert batch.count == size
            check_rows(batch, before)
            before = batch
        (fault,) = each.drain_faults().restarts
        assert (fault.kind, fault.env) == (name, 1)
        assert re.search(rf"worker {WORKER}, environment 1, step 2 of its episode 0 .*: {words}", fault.message)
        now = [process._process.pid for process in envs._processes]
        assert now[0] == first[0]
        assert now[1] != first[1]
        assert not alive(first[1])
    assert not any(alive(pid) for pid in now)


def test_a_step_that_got_no_answer_is_no_transition() -> None:
    with processes(bad("die", 1, every=2), 2, seed=ONE_BAD) as envs:
        envs.reset()
        before = envs.obs.copy()
        step = envs.step(np.zeros(2, np.int64))
        assert step.valid is not None
        assert step.valid.tolist() == [True, False]
        np.testing.assert_array_equal(envs.obs[1], before[1])
        assert np.isfinite(step.next_obs).all()
        assert [fault.env for fault in envs.faults] == [1]


def test_one_that_hangs_as_it_begins_is_replaced_too() -> None:
    spec = bad("hang", 0, every=2).model_copy(update={"step_timeout_seconds": 3.0})
    with processes(spec, 2, seed=ONE_BAD) as envs:
        each = Collector(envs, random_actions(2), WORKER, tolerance=Tolerance(9, 999))
        check_rows(each.collect(10), None)
        (fault,) = each.drain_faults().restarts
        assert "environment 1, step 0 of its episode 0" in fault.message


def test_one_that_cannot_be_made_is_told_like_any_other() -> None:
    with pytest.raises(UnknownEnvironment, match="did you mean"), processes(EnvSpec(id="CartPol-v1"), 2):
        pass
    with pytest.raises(EnvironmentFailed, match="no licence"), processes(EnvSpec(id="trainer.runtime.flaky:Broken"), 1):
        pass


HANGING = """
import sys, time
import numpy as np
from rltrain.api.env import EnvSpec
from rltrain.rollout.subprocesses import ProcessEnvs
envs = ProcessEnvs(EnvSpec(id="probes.envs:Bad", kwargs={"kind": "hang", "step": 1, "worker": 0}), 2, 0, 0, False)
envs.reset()
print(*(process._process.pid for process in envs._processes), flush=True)
envs.step(np.zeros(2, np.int64))
"""


@pytest.mark.timeout(60)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_outlives_its_parent_even_while_it_hangs(number: int) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    parent = subprocess.Popen([sys.executable, "-c", HANGING], stdout=subprocess.PIPE, env=environment, text=True)
    assert parent.stdout is not None
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(pids) == 2
    try:
        assert all(alive(pid) for pid in pids)
        parent.send_signal(number)
        parent.wait()
        parent.stdout.read()  # until the last of them has let go of it
        while any(alive(pid) for pid in pids):
            os.sched_yield()
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def worker(spec: EnvSpec, envs: int, serial: bool = False) -> RolloutWorker:
    config = DQNConfig(rollout_fragment_length=4, num_envs_per_worker=envs)
    return RolloutWorker(WorkerSpec("DQN", spec, config, seed=3, index=1, num_workers=1, serial=serial))


def test_a_manifest_says_how_environments_are_stepped() -> None:
    apart = worker(EnvSpec(id="CartPole-v1", vectorize="Subprocess"), 2)
    assert isinstance(apart._collector._envs, ProcessEnvs)  # type: ignore[union-attr]
    assert [apart.sample().count for _ in range(3)] == [8, 8, 8]
    apart.close()
    assert isinstance(worker(EnvSpec(id="CartPole-v1", vectorize="Sequential"), 8)._collector._envs, EnvList)  # type: ignore[union-attr]
    with pytest.raises(UnknownEnvironment, match="'Pendulum-v1' brings no vector environment along"):
        worker(EnvSpec(id="Pendulum-v1", vectorize="Native"), 2)


def test_a_step_s_limit_needs_processes() -> None:
    with pytest.raises(ValueError, match="stepTimeoutSeconds needs environments in processes"):
        EnvSpec(id="CartPole-v1", vectorize="Native", step_timeout_seconds=3.0)

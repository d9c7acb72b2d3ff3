"""Several agents in processes: the same transitions, and an end to whatever hangs or dies."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rltrain.api.config import DDPPOConfig
from rltrain.api.env import EnvSpec
from rltrain.api.errors import EnvironmentFailed, TooManyRestarts
from rltrain.rollout import columns as c
from rltrain.rollout.agents_process import AgentsProcess
from rltrain.rollout.multi_agent import MultiAgentCollector
from rltrain.rollout.vector import episode_seed
from rltrain.rollout.worker import RolloutWorker, WorkerSpec
from rltrain.state import content_hash
from trainer.rollout.test_multi_agent import LIVES
from trainer.runtime.processes import alive

INDEX = 2
SEED = next(
    seed
    for seed in range(1000)
    if [[episode_seed(seed, INDEX, env, episode) % 4 == 0 for episode in range(5)] for env in (0, 1)]
    == [[False] * 5, [False, True, False, False, False]]
)
"""With which of two environments the second alone is bad, in its second episode of five."""


@contextmanager
def sampling(
    env: str = "Roll", seed: int = 3, serial: bool = True, **spec: Any
) -> Iterator[tuple[RolloutWorker, MultiAgentCollector]]:
    kwargs = {"lives": LIVES, **spec.pop("kwargs", {})}
    config = DDPPOConfig(rollout_fragment_length=9, num_envs_per_worker=2)
    each = EnvSpec(id=f"probes.agents:{env}", kwargs=kwargs, **spec)
    worker = RolloutWorker(WorkerSpec("DDPPO", each, config, seed=seed, index=INDEX, serial=serial))
    try:
        assert isinstance(worker._collector, MultiAgentCollector)
        yield worker, worker._collector
    finally:
        worker.close()


def pids(collector: MultiAgentCollector) -> list[int]:
    envs = collector._envs.envs
    assert all(isinstance(env, AgentsProcess) for env in envs)
    return [env._process._process.pid for env in envs]  # type: ignore[union-attr]


def test_processes_give_what_the_worker_itself_gives_and_take_up_its_states() -> None:
    with sampling() as (own, _), sampling(vectorize="Subprocess") as (apart, collector):
        assert os.getpid() not in pids(collector)
        for fragment in range(4):
            if fragment == 2:
                state = apart.get_state()
                assert content_hash(state) == content_hash(own.get_state())
                apart.set_state(own.get_state())
                own.set_state(state)
            mine, its = own.sample(), apart.sample()
            for policy, rows in mine.policies.items():
                assert content_hash(dict(rows.columns)) == content_hash(dict(its.policies[policy].columns))
            assert own.drain_episodes() == apart.drain_episodes()


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        ("raise", "RuntimeError", "RuntimeError: this probe raises"),
        ("die", "process", "its process ended with exit code 7"),
        ("hang", "time limit", "there is no answer within the time limit (3 s a step)"),
    ],
)
def test_one_that_fails_is_replaced_its_episode_dropped_and_counted_and_the_others_go_on(
    kind: str, name: str, words: str
) -> None:
    with sampling("Stuck", SEED, step_timeout_seconds=3.0, max_restarts=1, kwargs={"kind": kind, "every": 4}) as (
        _,
        collector,
    ):
        before = pids(collector)
        batches = [collector.collect(size) for size in (20, 20, 14)]
        (fault,) = (report := collector.drain_faults()).restarts
        assert (fault.kind, fault.env, report.episodes_dropped) == (name, 1, 1)
        assert "failed in worker 2, environment 1, step 2 of its episode 1 (seed " in fault.message
        assert fault.message.endswith(words)
        after = pids(collector)
        assert (before[0] == after[0], before[1] == after[1], alive(before[1])) == (True, False, False)
        assert [batch.count for batch in batches] == [20, 20, 14]
        assert {record.length for record in collector.drain_episodes()} == {6}
        rows = [batch.policies["default_policy"] for batch in batches]
        stays = np.concatenate([each[c.OBS][:, 0] == 0 for each in rows])
        lengths = np.unique(np.concatenate([each[c.EPS_ID] for each in rows])[stays], return_counts=True)[1]
        assert sorted(lengths)[2:] == [6] * (len(lengths) - 2), "but for those that are open, episodes are whole"
    assert not any(alive(pid) for pid in after)


def test_an_episode_s_seed_never_comes_twice_whatever_fails() -> None:
    with sampling("Stuck", SEED, vectorize="Subprocess", max_restarts=1, kwargs={"kind": "die", "every": 4}) as (
        _,
        collector,
    ):
        collector.collect(2 * 6 * 2)
        assert len(collector.drain_faults().restarts) == 1
        assert [state["episode"] for state in collector._envs.get_state()["envs"]] == [2, 2]
        assert [env._episode for env in collector._envs.envs] == [2, 2]


@pytest.mark.parametrize("vectorize", ["Sequential", "Subprocess"])
def test_one_that_fails_as_a_saved_worker_is_taken_up_is_borne_as_well(vectorize: str) -> None:
    options = {"vectorize": vectorize, "max_restarts": 1, "kwargs": {"kind": "raise", "at": 0, "every": 4}}
    with sampling("Stuck", SEED, serial=False, **options) as (worker, collector):
        collector.collect(4)
        worker.set_state(worker.get_state())
        assert [fault.env for fault in collector.drain_faults().restarts] == [1]
        assert [state["episode"] for state in collector._envs.get_state()["envs"]] == [1, 2]
        assert collector.collect(12).count == 12


def test_all_step_at_once(tmp_path: Path) -> None:
    """Each waits in its first step until the other one is in its own, too."""
    with sampling(
        "Meets", vectorize="Subprocess", step_timeout_seconds=10.0, kwargs={"folder": str(tmp_path), "count": 2}
    ) as (_, collector):
        assert collector.collect(2).count == 2
        assert not collector.drain_faults().restarts


def test_a_reset_that_hangs_is_ended_too_and_past_the_limit_the_worker_fails_saying_so() -> None:
    kwargs = {"kind": "hang", "at": 0}
    words = (
        r"time limit \(0\.2 s a step\); with this, environments of its worker have failed 2 times.*maxRestarts allows 1"
    )
    with (
        pytest.raises(TooManyRestarts, match=words),
        sampling("Stuck", step_timeout_seconds=0.2, max_restarts=1, kwargs=kwargs),
    ):
        pass


def test_what_can_not_be_made_apart_is_told_with_why() -> None:
    env = EnvSpec(id="probes.agents:Stuck", vectorize="Subprocess", kwargs={"lives": LIVES, "kind": "", "made": False})
    process = AgentsProcess(env, seed=0, worker=1, index=0, record=False)
    with pytest.raises(EnvironmentFailed, match="can't be made in worker 1: its process ended with exit code 7"):
        process.made()
    process.end()


def test_a_process_imports_nothing_that_takes_long() -> None:
    heavy = "import sys, rltrain.rollout.env_process; sys.exit(any(name in sys.modules for name in ('torch', 'ray')))"
    assert subprocess.run([sys.executable, "-c", heavy], check=False).returncode == 0

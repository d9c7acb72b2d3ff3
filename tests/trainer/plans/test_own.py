"""A plan of a user's own trains as the built-in ones do, and what is none is refused before anything starts."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rltrain import user_code
from rltrain.api.errors import InvalidManifest, TrainingFailed
from rltrain.api.load import load_job
from rltrain.plans.own import plan_of
from rltrain.plans.registry import PLANS
from rltrain.runtime.interrupts import Interrupts
from rltrain.runtime.local import run_locally
from trainer.plans import own_plans
from trainer.runtime.runs import DDPPO, DQN, job, results, run_serially

EXAMPLE = Path(__file__).parents[3] / "examples/own-plan/cartpole.yaml"
OWN: dict[str, Any] = {**DQN, "plan": "trainer.plans.own_plans:counted", "basePlan": "DQN"}


def test_the_example_trains_in_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(user_code.FOLDERS, "")
    user_code.reach(EXAMPLE.parent)
    small = ["stop={envSteps: 1600}", "config.buffer_size=2000", "config.min_time_s_per_reporting=0"]
    run = run_locally(
        load_job(EXAMPLE, [*small, "config.timesteps_per_iteration=400"]),
        tmp_path / "run",
        resume=False,
        serial=True,
        interrupts=Interrupts(),
    )
    assert (run.state, run.env_steps >= 1600) == ("Succeeded", True)
    assert run.trained_steps > 8 * 600, "what is replayed, and what is fresh"
    assert results(tmp_path / "run")[-1]["info"]["learner"]["loss"] >= 0


RANKS = """
from rltrain.ops import *
from rltrain.plans.ddppo import ddppo

def doubled(rank, fragment):
    rank.fragments = getattr(rank, "fragments", 0) + 1
    assert rank.average is not None
    return fragment

def mine(context):
    config, workers = context.config, context.workers
    flow = (
        ParallelRollouts(workers, mode="raw")
        .for_each(doubled)
        .for_each(SampleSize())
        .agree(agree_on_minibatches(config.rollout_fragment_length * config.num_envs_per_worker))
        .for_each(TrainRank())
        .batch_across_shards()
        .for_each(RecordRankStats())
    )
    return StandardMetricsReporting(flow, workers, config)
"""


ENVS = """
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

class Mine(CartPoleEnv):
    pass
"""


def test_its_steps_run_on_the_actors_too_with_its_module_beside_the_manifest(tmp_path: Path) -> None:
    """And with that of an environment of the user's own, which the actors must find as well."""
    folder = tmp_path / "jobs"
    folder.mkdir()
    (folder / "ranks_of_mine.py").write_text(RANKS)
    (folder / "envs_of_mine.py").write_text(ENVS)
    own = {"plan": "ranks_of_mine:mine", "basePlan": "DDPPO", "env": {"id": "envs_of_mine:Mine"}}
    manifest = {
        "apiVersion": "rltrain.dev/v1alpha1",
        "kind": "RLTrainingJob",
        "metadata": {"name": "own"},
        "spec": {**DDPPO, **own, "stop": {"envSteps": 160}},
    }
    (folder / "job.yaml").write_text(json.dumps(manifest))
    done = subprocess.run(
        [sys.executable, "-c", "from rltrain.cli.entry import main; main()", "run", "jobs/job.yaml", "--out", "run"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert results(tmp_path / "run")[-1]["counters"]["num_env_steps_trained"] >= 160


def test_it_goes_on_where_it_was_and_not_as_another_plan(tmp_path: Path) -> None:
    own_plans.steps_seen.clear()
    interrupted = run_serially(job(OWN), tmp_path / "run", looks=90)
    assert interrupted.state == "Interrupted"
    ended = run_serially(job(OWN), tmp_path / "run", resume=True)
    assert ended.state == "Succeeded"
    assert own_plans.steps_seen[-1] >= 600
    with pytest.raises(Exception, match="plan"):
        run_serially(job({**DQN, "stop": {"envSteps": 900}}), tmp_path / "run", resume=True)


def test_a_built_in_plan_is_itself() -> None:
    assert plan_of(job(DQN).spec) is PLANS["DQN"]
    assert plan_of(job(OWN).spec).roles == PLANS["DQN"].roles


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("trainer.plans.no_such_plans:mine", "can't be loaded: No module named .*package.module:function"),
        ("trainer.plans.own_plans:missing", "can't be loaded: module .* has no attribute 'missing'"),
        ("trainer.plans.own_plans:NOT_A_FUNCTION", "is not a function"),
        ("trainer.plans.own_plans:without_context", "must take one argument, the plan's context"),
        ("trainer.plans.own_plans:breaks", "can't make its dataflow: KeyError: 'no such thing'"),
        ("trainer.plans.own_plans:gives_a_list", "must return the flow of its results, not list.*Standard"),
    ],
)
def test_what_is_no_plan_is_refused_with_a_sentence_before_anything_starts(
    reference: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidManifest, match=f"(?s)spec.plan.*{reference}'? {words}"):
        run_serially(job({**OWN, "plan": reference}), tmp_path / "run")
    assert not (tmp_path / "run" / "results.jsonl").exists() or not results(tmp_path / "run")


def test_a_flow_of_something_else_than_results_fails_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(TrainingFailed, match="must bring results, not int: end it with StandardMetricsReporting"):
        run_serially(job({**OWN, "plan": "trainer.plans.own_plans:gives_numbers"}), tmp_path / "run")

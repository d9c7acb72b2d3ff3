"""Several agents in every plan: resumed bit by bit, ranks alike, evaluated, and learnt in seconds."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rltrain.api.env import EnvSpec
from rltrain.api.errors import InvalidInput, InvalidManifest, UnsupportedSpace
from rltrain.cli.main import _run
from rltrain.flow import MetricsContext, Signal
from rltrain.flow.metrics import STEPS_SAMPLED
from rltrain.flow.ray_backend import RayBackend
from rltrain.flow.serial import SerialBackend
from rltrain.ops.ranks import Rank
from rltrain.rollout import columns as c
from rltrain.runtime.build import Training
from rltrain.runtime.collecting import collect
from rltrain.runtime.evaluation import evaluate_checkpoint
from rltrain.runtime.state_files import read_state
from rltrain.state import content_hash
from trainer.ops import users
from trainer.runtime.runs import APEX, APEX_CLASSIC, CQL, DDPPO, DQN, SAC, job, marker, results, run_serially
from trainer.runtime.test_recurrent_runs import R2D2

TELL: dict[str, Any] = {"id": "probes.agents:Tell", "kwargs": {"leaves": 7}}
TWO: dict[str, Any] = {"policy_mapping": {"agent_0": "a", "agent_1": "b"}}
WALL_CLOCK = ("timers_ms", "throughputs", "resumed")


def variant(spec: dict[str, Any], env: dict[str, Any] = TELL, **config: Any) -> Any:
    return job({**spec, "env": env}, config={"multiagent": TWO, **config}, stop={"envSteps": 400})


LOCKSTEP: dict[str, Any] = {"prioritized_replay": False, "multiagent": {**TWO, "replay_mode": "lockstep"}}
VARIANTS = {
    "DQN": variant(DQN),
    "DQN in lockstep": variant(DQN, **LOCKSTEP),
    "DDPPO": variant(DDPPO),
    "Apex": variant(APEX),
    "ApexClassic in lockstep": variant(APEX_CLASSIC, **LOCKSTEP),
    "OffPolicy with SAC": variant(SAC, {"id": "probes.agents:Steer"}),
    "OffPolicy with DQN, one of two learns": variant(
        {**DQN, "plan": "OffPolicy"}, policy="DQN", multiagent={**TWO, "policies_to_train": ["b"]}
    ),
    "OffPolicy with R2D2": variant(R2D2, {"id": "probes.agents:Recalls"}),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_interrupted_run_ends_as_the_uninterrupted_one(name: str, tmp_path: Path) -> None:
    manifest = VARIANTS[name]
    whole = run_serially(manifest, tmp_path / "whole")
    for count, looks in enumerate([1, 3] if name == "DDPPO" else [2, 25]):
        part = run_serially(manifest, tmp_path / "parts", resume=count > 0, looks=looks)
        assert part.exit_code == 130
    ended = run_serially(manifest, tmp_path / "parts", resume=True)
    assert whole.state == ended.state == "Succeeded"
    contents = [
        {file: entry["sha256"] for file, entry in marker(run.checkpoint)["files"].items()} for run in (whole, ended)
    ]
    assert contents[0] == contents[1]
    assert marker(whole.checkpoint)["hashes"] == marker(ended.checkpoint)["hashes"]
    lines = [
        [{key: value for key, value in line.items() if key not in WALL_CLOCK} for line in results(tmp_path / run)]
        for run in ("whole", "parts")
    ]
    assert lines[0] == lines[1]


def test_results_count_env_steps_and_tell_of_each_policy(tmp_path: Path) -> None:
    run_serially(VARIANTS["DQN"], tmp_path)
    last = results(tmp_path)[-1]
    assert last["env_steps"] == 400
    assert last["episodes"] == 20, "episodes of 20 env steps, whoever is there"
    assert {name.split("/")[0] for name in last["info"]["learner"]} == {"a", "b"}
    assert last["info"]["policy_reward_mean"].keys() == {"a", "b"}
    assert sum(last["info"]["policy_reward_mean"].values()) == pytest.approx(last["episode_return_mean"])
    assert last["trained_steps"] % 16 == 0, "a train batch is train_batch_size env steps, of however many policies"


def test_trained_steps_keep_to_the_intensity_of_sampled_env_steps(tmp_path: Path) -> None:
    for name in ("DQN", "DQN in lockstep"):
        run_serially(VARIANTS[name], tmp_path / name)
        last = results(tmp_path / name)[-1]
        assert last["trained_steps"] == pytest.approx(3 * (400 - 96), abs=3 * 16)


def hash_of(rank: Rank) -> str:
    return content_hash(rank.policy.learned_state())


def test_two_gloo_ranks_of_several_agents_are_identical_and_learn_what_the_serial_ones_learn(
    ray_backend: RayBackend,
) -> None:
    # One agent comes after three steps only: fragments of two steps have rows of it or not, on each rank at its time.
    lives = {"agent_0": [[0, 6]], "agent_1": [[3, 2]]}
    manifest = job(
        {**DDPPO, "env": {"id": "probes.agents:Roll", "kwargs": {"lives": lives}}},
        config={"multiagent": TWO, "rollout_fragment_length": 2, "num_envs_per_worker": 1},
    )
    learned: list[set[str]] = []
    for backend in (ray_backend, SerialBackend()):
        with MetricsContext().active() as metrics:
            training = Training(manifest, backend, metrics)
            while len(training.workers.actors()) < 2:
                if training.pending():
                    backend.wait(training.pending(), 0.1)
                training.refresh()
            hashes: list[str] = []
            while metrics.counters[STEPS_SAMPLED] < 24:
                item = training.flow.tick(0.5)
                hashes = hashes if isinstance(item, Signal) else (item.rank_hashes or hashes)
            assert len(hashes) == 2
            assert len(set(hashes)) == 1
            learned.append({backend.result(actor.apply(hash_of)) for actor in training.workers.actors()})
            assert len(learned[-1]) == 1
    assert learned[0] == learned[1]


@pytest.mark.parametrize("name", ["DQN", "DDPPO", "Apex"])
def test_a_checkpoint_is_evaluated_with_all_its_policies(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_serially(VARIANTS[name], tmp_path / "run")
    scores = evaluate_checkpoint(tmp_path / "run", 5, seed=1).scores
    assert scores.episode_length_mean == 20
    capsys.readouterr()
    assert _run(["evaluate", str(tmp_path / "run"), "--episodes", "5", "--seed", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["episode_return_mean"] == scores.episode_return_mean


STEER = EnvSpec(id="probes.agents:Steer")


def cql_from(data: Path, steps: int = 1600, **config: Any) -> Any:
    own = {"input": str(data), "multiagent": TWO, "evaluation_num_episodes": 2, **config}
    return job(
        {**CQL, "env": {"id": STEER.id}}, config=own, checkpoint={"everySeconds": 30}, stop={"trainedSteps": steps}
    )


@pytest.mark.parametrize("mode", ["independent", "lockstep"])
def test_cql_of_several_agents_learns_from_a_recording_by_chance_and_resumes_bit_by_bit(
    mode: str, tmp_path: Path
) -> None:
    collect([], STEER, tmp_path / "data.npz", steps=400, seed=1, explore=False)
    manifest = cql_from(tmp_path / "data.npz", multiagent={**TWO, "replay_mode": mode, "policies_to_train": ["b"]})
    whole = run_serially(manifest, tmp_path / "whole")
    assert run_serially(manifest, tmp_path / "parts", looks=30).exit_code == 130
    ended = run_serially(manifest, tmp_path / "parts", resume=True)
    assert marker(whole.checkpoint)["hashes"] == marker(ended.checkpoint)["hashes"]
    last = results(tmp_path / "whole")[-1]
    assert {name.split("/")[0] for name in last["info"]["learner"]} == {"b"}
    assert [line["evaluation"]["episode_length_mean"] for line in results(tmp_path / "whole") if "evaluation" in line]
    assert last["trained_steps"] == 1600


def test_agents_are_recorded_with_their_run_and_cql_learns_from_it_what_they_could(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    soft = {**FAST, "policy": "SAC", "lr": 3e-3, "train_batch_size": 32, "initial_alpha": 0.05, "learning_starts": 400}
    spec = {"plan": "OffPolicy", "env": {"id": STEER.id}, "stop": {"envSteps": 600}}
    run_serially(job({**spec, "config": {"multiagent": TWO, **soft}}), tmp_path / "sac")
    data = tmp_path / "data.npz"
    assert _run(["collect", str(tmp_path / "sac"), "--steps", "600", "--explore", "--out", str(data)]) == 0
    assert "agent_1: 600 transitions, 30 episodes" in capsys.readouterr().out
    with np.load(data) as file:
        assert np.abs(file[f"agent_1/{c.ACTIONS}"]).max() > 1, "the environment's own units"
        paid = 1 - np.abs(file[f"agent_1/{c.ACTIONS}"] - file[f"agent_1/{c.OBS}"])[:, 0]
        np.testing.assert_allclose(file[f"agent_1/{c.REWARDS}"], paid, atol=1e-6)
    offline = {"lr": 3e-3, "gamma": 0.0, "min_q_weight": 0.1, "bc_iters": 0, "initial_alpha": 0.05}
    size = {
        "train_batch_size": 32,
        "target_network_update_freq": 0,
        "timesteps_per_iteration": 3200,
        "model": {"fcnet_hiddens": [32]},
    }
    run_serially(cql_from(data, steps=22_400, **offline, **size), tmp_path / "cql")
    # 20 steps of two agents, each paid 1 less its distance.
    assert evaluate_checkpoint(tmp_path / "cql", 20, seed=1).scores.episode_return_mean >= 35


def test_data_that_a_policy_could_never_learn_from_is_refused_by_the_policys_name(tmp_path: Path) -> None:
    collect([], STEER, tmp_path / "data.npz", steps=400, seed=1, explore=False)
    for config, words in (
        ({"buffer_size": 399}, "buffer_size: is 399, but the dataset has 400 transitions of policy a"),
        ({"train_batch_size": 401}, "train_batch_size: is 401, but the dataset has only 400 transitions of policy a"),
        (
            {"multiagent": {"policy_mapping": {"agent_*": "both"}}, "buffer_size": 799},
            "has 800 transitions of policy both",
        ),
        ({"multiagent": {**TWO, "replay_mode": "lockstep"}, "buffer_size": 399}, "the dataset has 400 env steps"),
        (
            {"multiagent": {"policy_mapping": {"*": "a"}, "replay_mode": "lockstep"}, "train_batch_size": 401},
            "only 400 env",
        ),
    ):
        with pytest.raises(InvalidManifest, match=words):
            run_serially(cql_from(tmp_path / "data.npz", **config), tmp_path / "run")
    with pytest.raises(UnsupportedSpace, match="plan CQL can't take the action space Discrete"):
        run_serially(job(CQL, env=TELL), tmp_path / "run")


FAST: dict[str, Any] = {"gamma": 0.0, "lr": 5e-3, "model": {"fcnet_hiddens": [32]}, "min_time_s_per_reporting": 0}
REPLAY: dict[str, Any] = {
    **FAST,
    "hiddens": [],
    "learning_starts": 200,
    "exploration_config": {"epsilon_timesteps": 800},
}


@pytest.mark.parametrize(
    ("plan", "config", "roles"),
    [
        ("DQN", REPLAY, {}),
        ("DQN", {**REPLAY, **LOCKSTEP}, {}),
        ("DDPPO", {**FAST, "rollout_fragment_length": 40}, {"workers": {"replicas": 1}}),
        (
            "Apex",
            {**REPLAY, "train_batch_size": 64, "training_intensity": 16, "optimizer": {"num_replay_buffer_shards": 2}},
            {"rollouts": {"replicas": 2}},
        ),
    ],
    ids=["DQN", "DQN in lockstep", "DDPPO", "Apex"],
)
def test_agents_learn_together_in_2000_env_steps(
    plan: str, config: dict[str, Any], roles: dict[str, Any], tmp_path: Path
) -> None:
    env = {"id": "probes.agents:Tell", "kwargs": {"sizes": [3, 4]}}
    spec = {"plan": plan, "env": env, "config": {"multiagent": TWO, **config}, "stop": {"envSteps": 2000}, **roles}
    run_serially(job(spec), tmp_path)
    # 20 steps of two agents, each paid for itself and once more where both are right.
    assert evaluate_checkpoint(tmp_path, 5, seed=1).scores.episode_return_mean >= 76


@pytest.mark.parametrize(
    ("env", "config", "wanted"),
    [
        (
            # 20 steps of two agents, each paid 1 less its distance.
            "probes.agents:Steer",
            {
                **FAST,
                "policy": "SAC",
                "lr": 3e-3,
                "learning_starts": 300,
                "train_batch_size": 64,
                "initial_alpha": 0.05,
                "rollout_fragment_length": 4,
            },
            36,
        ),
        (
            # Two agents, each paid once; 1/2 each is the most without a memory.
            "probes.agents:Recalls",
            {
                **REPLAY,
                "policy": "R2D2",
                "gamma": 0.9,
                "model": {"fcnet_hiddens": [16], "lstm_cell_size": 16, "max_seq_len": 3},
                "learning_starts": 100,
                "train_batch_size": 96,
                "buffer_size": 3000,
                "rollout_fragment_length": 6,
                "training_intensity": 12,
                "target_network_update_freq": 100,
            },
            1.9,
        ),
    ],
    ids=["SAC", "R2D2"],
)
def test_off_policy_algorithms_learn_with_two_agents_too(
    env: str, config: dict[str, Any], wanted: float, tmp_path: Path
) -> None:
    spec = {"plan": "OffPolicy", "env": {"id": env}, "stop": {"envSteps": 2000}}
    run_serially(job({**spec, "config": {"multiagent": TWO, **config}}), tmp_path)
    assert evaluate_checkpoint(tmp_path, 50, seed=1).scores.episode_return_mean >= wanted


def test_a_shared_policy_learns_from_both_of_its_agents(tmp_path: Path) -> None:
    spec = {"plan": "DQN", "env": {"id": "probes.agents:Tell"}, "config": REPLAY, "stop": {"envSteps": 1500}}
    run_serially(job(spec), tmp_path)
    assert evaluate_checkpoint(tmp_path, 5, seed=1).scores.episode_return_mean >= 76


def test_what_cannot_be_trained_leaves_nothing_behind(tmp_path: Path) -> None:
    for manifest, words in (
        (job(DQN, config={"multiagent": {}}), "the environment has one agent"),
        (variant(DQN, multiagent={"policy_mapping": {"agent_0": "a"}}), "no policy for agent 'agent_1'"),
        (variant(DQN, {"id": "probes.agents:Tell", "kwargs": {"sizes": [2, 3]}}, multiagent={}), "spaces differ"),
    ):
        with pytest.raises(InvalidManifest, match=words):
            run_serially(manifest, tmp_path / "run")
        assert not (tmp_path / "run").exists()


def test_a_resume_with_other_policies_is_refused(tmp_path: Path) -> None:
    run_serially(VARIANTS["DQN"], tmp_path, looks=20)
    other = variant(DQN, multiagent={"policy_mapping": {"agent_0": "a", "agent_1": "c"}})
    with pytest.raises(InvalidInput, match="of the policies a, b, this one of a, c"):
        run_serially(other, tmp_path, resume=True)


def test_users_function_sees_batches_by_policy(tmp_path: Path) -> None:
    users.SEEN.clear()
    run_serially(variant(DQN, before_learn_on_batch="trainer.ops.users:watched"), tmp_path)
    assert users.SEEN
    assert all(set(each.values()) == {16} for each in users.SEEN)
    assert max(len(each) for each in users.SEEN) == 2


def test_evaluations_during_training_play_all_policies(tmp_path: Path) -> None:
    run_serially(variant(DQN, evaluation_interval=1, evaluation_num_episodes=3), tmp_path)
    told = [line["evaluation"] for line in results(tmp_path) if "evaluation" in line]
    assert told
    assert all(each["episode_length_mean"] == 20 for each in told)


def test_learners_that_share_each_batch_learn_what_one_learns(tmp_path: Path) -> None:
    """Priorities and rows are shared out by policy; what is left of differences is rounding."""
    hashes = {}
    for learners in (1, 2):
        spec = {**APEX, "env": TELL, "learners": {"replicas": learners}}
        manifest = job(spec, config={"multiagent": TWO, "lr": 1e-3}, stop={"envSteps": 400})
        run_serially(manifest, tmp_path / str(learners))
        state = read_state(Path(newest(tmp_path / str(learners))), "learner")["policy"]
        hashes[learners] = {name: state["weights"][name] for name in ("a", "b")}
    for name, weights in hashes[1].items():
        for key, value in weights.items():
            np.testing.assert_allclose(hashes[2][name][key], value, atol=2e-3)


def newest(path: Path) -> Path:
    return max((path / "checkpoints").iterdir())

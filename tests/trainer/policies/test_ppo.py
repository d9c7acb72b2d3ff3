"""PPO: objective, value targets at cuts, and gradients that average over ranks."""

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from rltrain.api.config import DDPPOConfig, ModelConfig
from rltrain.api.env import EnvSpec
from rltrain.policies.base import LearnInfo
from rltrain.policies.ppo import _LEARNT_FROM, PPOPolicy
from rltrain.policies.sharing import alone
from rltrain.policies.torch_policy import Seeds
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from rltrain.rollout.worker import RolloutWorker, WorkerSpec
from rltrain.state import content_hash

OBS = spaces.Box(-1, 1, (3,))
SMALL = ModelConfig(fcnet_hiddens=(16,))
Sgd = Generator[torch.Tensor, torch.Tensor, LearnInfo]


def policy(worker: int = 0, **options: Any) -> PPOPolicy:
    config = DDPPOConfig(**{"model": SMALL, "sgd_minibatch_size": 50, **options})
    return PPOPolicy(config, OBS, spaces.Discrete(4), Seeds(0, worker))


def batch(count: int, seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    return Batch(
        {
            c.OBS: rng.normal(size=(count, 3)).astype(np.float32),
            c.ACTIONS: rng.integers(4, size=count),
            c.ACTION_LOGP: np.log(rng.uniform(0.1, 0.5, count)).astype(np.float32),
            c.VF_PREDS: rng.normal(size=count).astype(np.float32),
            c.VALUE_TARGETS: rng.normal(size=count).astype(np.float32) * 5,
            c.ADVANTAGES: rng.normal(size=count).astype(np.float32),
        }
    )


def lockstep(ranks: list[Sgd]) -> list[LearnInfo]:
    """Drive ranks together, each sent the mean of all vectors, and check that they end together."""
    vectors = [next(rank) for rank in ranks]
    while True:
        mean = torch.stack(vectors).mean(dim=0)
        vectors, infos = [], []
        for rank in ranks:
            try:
                vectors.append(rank.send(mean.clone()))
            except StopIteration as stop:
                infos.append(stop.value)
        assert not (vectors and infos), "every rank does the same number of minibatches"
        if infos:
            return infos


def tensors(rows: Batch) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(column) for name, column in rows.columns.items()}


def total(each: PPOPolicy, rows: Batch) -> torch.Tensor:
    """The rows' summed gradient, and their number."""
    return each.gradient([torch.from_numpy(rows[name]) for name in _LEARNT_FROM], torch.zeros(6))


def gradient(vector: torch.Tensor) -> torch.Tensor:
    return vector[:-1] / vector[-1]


@pytest.mark.parametrize("counts", [(40, 40), (50, 35), (50, 0), (1, 49)])
def test_the_ranks_gradient_equals_the_one_of_their_rows_in_one_process(counts: tuple[int, int]) -> None:
    first, second = batch(counts[0], seed=1), batch(counts[1], seed=2)
    together = Batch.concat([first, second])
    each = policy(entropy_coeff=0.01)
    parts = [total(each, rows) for rows in (first, second)]
    whole = total(each, together)
    torch.testing.assert_close(gradient((parts[0] + parts[1]) / 2), gradient(whole), rtol=0, atol=1e-6)
    assert float(gradient(whole).abs().max()) > 0.01


@pytest.mark.parametrize("counts", [(50, 50), (50, 30), (50, 0)])
def test_two_ranks_train_as_one_process_on_both_their_rows(counts: tuple[int, int]) -> None:
    # Advantages of -1 and 1 in equal numbers are standardised already, alone and together.
    parts = [
        batch(count, seed=count + i).with_columns(**{c.ADVANTAGES: np.resize(np.array([-1, 1], np.float32), count)})
        for i, count in enumerate(counts)
    ]
    ranks = [policy(worker=1, lr=1e-3), policy(worker=2, lr=1e-3)]
    alone = policy(lr=1e-3, sgd_minibatch_size=100)
    infos = lockstep([rank.minibatch_sgd(part, minibatches=1) for rank, part in zip(ranks, parts, strict=True)])
    norm = alone.learn_on_batch(Batch.concat(parts)).stats["grad_norm"]
    # Adam hides a gradient's scale, its norm doesn't.
    assert infos[0].stats["grad_norm"] == pytest.approx(norm, rel=1e-5)
    for name, weights in alone.get_weights().items():
        np.testing.assert_allclose(ranks[0].get_weights()[name], weights, atol=2e-5)


@pytest.mark.parametrize("counts", [(500, 350), (500, 0), (101, 100)])
def test_ranks_of_unequal_batches_do_equal_minibatches_and_stay_identical(counts: tuple[int, int]) -> None:
    ranks = [policy(worker=1, lr=1e-3, num_sgd_iter=3), policy(worker=2, lr=1e-3, num_sgd_iter=3)]
    agreed = max(rank.minibatches_of(batch(count, seed=count)) for rank, count in zip(ranks, counts, strict=True))
    start = content_hash(ranks[0].learned_state())
    sgds = [
        rank.minibatch_sgd(batch(count, seed=count), minibatches=agreed)
        for rank, count in zip(ranks, counts, strict=True)
    ]
    infos = lockstep(sgds)
    assert content_hash(ranks[0].learned_state()) == content_hash(ranks[1].learned_state()) != start
    assert infos[0].stats["grad_norm"] == infos[1].stats["grad_norm"] > 0
    assert ranks[0].learned_state()["optimizer"]["step"] == 3 * agreed


def test_minibatches_cover_each_row_once_an_epoch_and_none_is_larger_than_asked() -> None:
    each = policy(num_sgd_iter=2)
    sgd, counts = each.minibatch_sgd(batch(120), minibatches=4), []
    vector: torch.Tensor | None = next(sgd)
    while vector is not None:
        counts.append(int(vector[-1]))
        try:
            vector = sgd.send(vector)
        except StopIteration:
            vector = None
    assert counts == [30] * 8


def test_fewer_minibatches_than_the_rows_need_are_refused() -> None:
    with pytest.raises(ValueError, match="120 rows need more than the 2 minibatches"):
        next(policy().minibatch_sgd(batch(120), minibatches=2))


def test_no_rank_having_rows_leaves_everything_as_it_was() -> None:
    each = policy()
    before = content_hash(each.learned_state())
    alone(each.minibatch_sgd(batch(0), minibatches=2))
    assert content_hash(each.learned_state()) == before


def test_the_loss_is_the_clipped_objective_with_clipped_values() -> None:
    each, rows = policy(clip_param=0.2, vf_clip_param=0.5, vf_loss_coeff=0.7, entropy_coeff=0.03), batch(64)
    with torch.no_grad():
        logits, values = each._network(torch.from_numpy(rows[c.OBS]))
    logp_all = torch.log_softmax(logits, dim=1).numpy()
    ratio = np.exp(logp_all[np.arange(64), rows[c.ACTIONS]] - rows[c.ACTION_LOGP])
    advantages = rows[c.ADVANTAGES]
    objective = np.minimum(ratio * advantages, np.clip(ratio, 0.8, 1.2) * advantages)
    near = rows[c.VF_PREDS] + np.clip(values.numpy() - rows[c.VF_PREDS], -0.5, 0.5)
    targets = rows[c.VALUE_TARGETS]
    vf_loss = np.maximum((values.numpy() - targets) ** 2, (near - targets) ** 2)
    entropy = -(np.exp(logp_all) * logp_all).sum(axis=1)
    expected = -objective.mean() + 0.7 * vf_loss.mean() - 0.03 * entropy.mean()
    loss, _ = each._loss(tensors(rows), torch.tensor(0.03))
    assert float(loss.detach()) == pytest.approx(float(expected), rel=1e-5)


def test_the_averaged_gradient_is_what_is_clipped() -> None:
    each = policy(grad_clip=0.01, num_sgd_iter=1)
    alone(each.minibatch_sgd(batch(50)))
    assert float(each._flat.gradient.norm()) == pytest.approx(0.01, rel=1e-3)


def test_log_probabilities_kept_with_actions_are_those_of_the_network() -> None:
    each, obs = policy(), batch(30)[c.OBS]
    actions, extras = each.compute_actions(obs, explore=True)
    with torch.no_grad():
        logits, _ = each._network(torch.from_numpy(obs))
    expected = torch.distributions.Categorical(logits=logits).log_prob(torch.from_numpy(actions))  # type: ignore[no-untyped-call]
    np.testing.assert_allclose(extras[c.ACTION_LOGP], expected, rtol=1e-5)
    assert extras[c.ACTION_LOGP].dtype == np.float32
    best, none = each.compute_actions(obs, explore=False)
    np.testing.assert_array_equal(best, logits.argmax(dim=1))
    assert none == {}


def test_values_at_a_truncation_come_from_the_final_observation_alone() -> None:
    config = DDPPOConfig(**{"model": SMALL, "gamma": 0.9, "rollout_fragment_length": 25, "num_envs_per_worker": 2})  # type: ignore[arg-type]
    worker = RolloutWorker(WorkerSpec("DDPPO", EnvSpec(id="probes.envs:Const"), config, seed=0))
    rows = worker.sample()
    assert isinstance(worker.policy, PPOPolicy)
    with torch.no_grad():
        next_values = worker.policy._network.values(torch.from_numpy(rows[c.NEXT_OBS])).numpy()
    last = np.flatnonzero(rows[c.TRUNCATEDS])
    assert last.size == 4
    np.testing.assert_allclose(rows[c.VALUE_TARGETS][last], 1 + 0.9 * next_values[last], rtol=1e-5)
    border = np.flatnonzero(rows[c.T] == 4)[[2, 5]]  # each environment's 25th row is in mid-episode
    np.testing.assert_allclose(rows[c.VALUE_TARGETS][border], 1 + 0.9 * next_values[border], rtol=1e-5)


def test_every_step_of_a_cut_but_endless_task_is_worth_its_whole_future() -> None:
    config = DDPPOConfig(
        **{"gamma": 0.9, "lambda": 1.0, "lr": 3e-3, "rollout_fragment_length": 20, "model": SMALL}  # type: ignore[arg-type]
    )
    worker = RolloutWorker(WorkerSpec("DDPPO", EnvSpec(id="probes.envs:Const"), config, seed=1, serial=True))
    assert isinstance(worker.policy, PPOPolicy)
    for _ in range(60):
        worker.policy.learn_on_batch(worker.sample())
    with torch.no_grad():
        values = worker.policy._network.values(torch.from_numpy(worker.sample()[c.OBS])).numpy()
    np.testing.assert_allclose(values, 10, atol=0.1)


def test_a_lone_rank_steps_on_the_plain_mean_gradient() -> None:
    each = policy()
    vector = total(each, batch(40))
    with each._flat.at(each._flat.vector) as parameters:
        loss, _ = each._loss(tensors(batch(40)), torch.tensor(0.0))
        expected = torch.cat([slope.reshape(-1) for slope in torch.autograd.grad(loss, list(parameters))])
    assert each._take(vector)
    torch.testing.assert_close(each._flat.gradient, expected)

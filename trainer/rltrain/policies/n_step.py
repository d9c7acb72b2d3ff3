"""N-step returns (Sutton & Barto 2018, section 7.1) over consecutive rows."""

import numpy as np

from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch


def n_step(batch: Batch, n: int, gamma: float) -> Batch:
    """Sum up to `n` rewards from each row on, never past its episode's end or its environment's last row.

    Args:
        batch: consecutive rows, each environment's together and in order.

    Returns:
        OBS, ACTIONS, REWARDS (sum of gamma^i r_i over the k <= n steps that there are), NEXT_OBS (after the
        last of them) and DISCOUNTS (gamma^k, or 0 where that step terminated), one row for each row given.
    """
    rewards, terminateds, next_obs = batch[c.REWARDS], batch[c.TERMINATEDS], batch[c.NEXT_OBS]
    steps = np.ones(batch.count, np.int64)
    if n > 1 and batch.count:
        goes_on = continues(batch)
        last = np.arange(batch.count)
        growing = np.ones(batch.count, bool)
        total = rewards.astype(np.float64)
        for k in range(1, n):
            growing &= goes_on[last]
            last[growing] += 1
            steps[growing] += 1
            total[growing] += gamma**k * rewards[last[growing]]
        rewards = total.astype(np.float32)
        terminateds, next_obs = terminateds[last], next_obs[last]
    powers = gamma ** np.arange(n + 1.0)
    discounts = powers.astype(np.float32).take(steps)
    discounts[terminateds] = 0.0
    return Batch(
        {
            c.OBS: batch[c.OBS],
            c.ACTIONS: batch[c.ACTIONS],
            c.REWARDS: rewards,
            c.NEXT_OBS: next_obs,
            c.DISCOUNTS: discounts,
        }
    )


def continues(batch: Batch) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether the next row is the next step of the same episode, bool (count,)."""
    goes_on = ~(batch[c.TERMINATEDS] | batch[c.TRUNCATEDS])
    goes_on[:-1] &= batch[c.ENV_ID][1:] == batch[c.ENV_ID][:-1]
    goes_on[-1:] = False
    return goes_on

"""Generalised advantage estimation (Schulman et al. 2016, eq. 16) over consecutive rows."""

import numpy as np

from rltrain.state import Array


def gae(
    rewards: Array,
    values: Array,
    next_values: Array,
    terminateds: Array,
    goes_on: Array,
    gamma: float,
    lambda_: float,
) -> Array:
    """Advantages; a terminated step bootstraps nothing, a truncated or last one its own next value.

    Args:
        rewards, values, next_values: float (n,); `next_values` of the observation after each step, the final
            one where an episode ended.
        terminateds: bool (n,).
        goes_on: bool (n,), whether the next row is the same episode's next step.

    Returns:
        float32 (n,).
    """
    rewards, values = rewards.astype(np.float64), values.astype(np.float64)
    deltas = rewards + gamma * np.where(terminateds, 0.0, next_values) - values
    decays = np.where(goes_on, gamma * lambda_, 0.0).tolist()
    advantages = deltas.tolist()
    following = 0.0
    for row in range(len(advantages) - 1, -1, -1):  # plain floats: 20 times faster than NumPy scalars
        following = advantages[row] = advantages[row] + decays[row] * following
    return np.array(advantages, np.float32)


def standardized(advantages: Array, floor: float = 1e-4) -> Array:
    """Mean 0 and standard deviation 1; a deviation below `floor` counts as `floor`."""
    if not advantages.size:
        return advantages
    centred = advantages - advantages.mean(dtype=np.float64)
    scaled: Array = (centred / max(floor, float(centred.std()))).astype(np.float32)
    return scaled

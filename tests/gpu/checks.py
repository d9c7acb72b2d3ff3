"""The learner on other devices than the CPU, and ranks that average over gloo or NCCL: all as one CPU would learn."""

import multiprocessing
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, Literal, cast

import numpy as np
import torch
import torch.distributed as dist
from gymnasium import spaces

from rltrain.api.config import DQNConfig, ModelConfig
from rltrain.flow.actors import drive
from rltrain.policies.registry import make_policy
from rltrain.policies.sharing import Share
from rltrain.rollout import columns as c
from rltrain.rollout.batch import Batch
from rltrain.runtime.collective import ProcessGroup
from rltrain.state import State, content_hash

SECONDS: Final = 120
"""In which ranks must have met, learnt and ended."""
UPDATES: Final = 10
TOLERANCE: Final = 5e-4
"""Of parameters, after so many updates; devices round in their own ways."""


class CheckFailed(Exception):
    """Something isn't as it is on a CPU."""


def policy(*devices: str) -> Any:
    config = DQNConfig(model=ModelConfig(fcnet_hiddens=(64,)), hiddens=(64,), noisy=False)
    return make_policy("DQN", config, spaces.Box(-1, 1, (4,)), spaces.Discrete(2), seed=1, devices=devices)


def batches(rows: int = 33) -> list[Batch]:
    rng = np.random.default_rng(0)
    return [
        Batch(
            {
                c.OBS: rng.normal(size=(rows, 4)).astype(np.float32),
                c.NEXT_OBS: rng.normal(size=(rows, 4)).astype(np.float32),
                c.ACTIONS: rng.integers(2, size=rows),
                c.REWARDS: rng.normal(size=rows).astype(np.float32),
                c.DISCOUNTS: np.full(rows, 0.99, np.float32),
            }
        )
        for _ in range(UPDATES)
    ]


def expected() -> State:
    """What one CPU learns."""
    one = policy("cpu")
    for batch in batches():
        one.learn_on_batch(batch)
    learnt: State = one.learned_state()
    return learnt


def check_learner(*devices: str) -> None:
    """A learner on some devices of this process. Raises CheckFailed."""
    made = policy(*devices)
    made.compute_actions(batches()[0][c.OBS], explore=True)
    for batch in batches():
        made.learn_on_batch(batch)
    resumed = policy(*devices)
    resumed.set_state(made.get_state())
    if content_hash(resumed.get_state()) != content_hash(made.get_state()):
        raise CheckFailed(f"a learner on {', '.join(devices)} isn't what it was after its state was taken up")
    _require_close(made.learned_state(), f"a learner on {', '.join(devices)}")


def check_ranks(backend: Literal["gloo", "nccl"], devices: Sequence[str]) -> None:
    """A process for each device, which average their gradients. Raises CheckFailed."""
    context = multiprocessing.get_context("spawn")
    store: Any = cast(Any, dist).TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    pool = context.Pool(len(devices))
    try:
        calls = [(backend, device, position, len(devices), store.port) for position, device in enumerate(devices)]
        states = pool.starmap_async(_learn, calls).get(SECONDS)
    except multiprocessing.TimeoutError:
        raise CheckFailed(f"{len(devices)} ranks over {backend} took longer than {SECONDS} s") from None
    finally:
        pool.terminate()
        pool.join()
    if len({content_hash(state) for state in states}) > 1:
        raise CheckFailed(f"{len(devices)} ranks over {backend} have drifted apart")
    _require_close(states[0], f"{len(devices)} ranks over {backend} on {', '.join(devices)}")


def _learn(backend: Literal["gloo", "nccl"], device: str, position: int, size: int, port: int) -> State:
    """In a rank's process."""
    if device != "cpu":
        torch.cuda.set_device(device)
    store: Any = cast(Any, dist).TCPStore("127.0.0.1", port, is_master=False, timeout=timedelta(seconds=SECONDS))
    group = ProcessGroup(store, position, size, backend, SECONDS)
    own = policy(device)
    for batch in batches():
        drive(own.learn_share(batch, Share(position, size)), group.average)
    state: State = own.learned_state()
    dist.destroy_process_group()
    return state


def _require_close(found: State, who: str) -> None:
    wanted = expected()
    for part in ("weights", "target"):
        for name, value in wanted[part].items():
            if not np.allclose(found[part][name], value, atol=TOLERANCE):
                off = float(np.abs(found[part][name] - value).max())
                raise CheckFailed(f"{who}: {part} {name} is off by {off:.2g} from what one CPU learns")

"""The process group of ranks, or of learners (torch.distributed): an averaging all-reduce over gloo or NCCL."""

import contextlib
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import ray.util
import torch
import torch.distributed as dist

from rltrain.flow import CollectiveFailed

_TCPStore: Any = cast(Any, dist).TCPStore  # not in torch's annotations


class Member(Protocol):
    """What an actor of a group holds.

    Attributes:
        average: the group's collective operation; set when the group is formed.
        store: where the group's members met.
    """

    average: Callable[[Any], Any] | None
    store: Any


class ProcessGroup:
    """This process's membership.

    Args:
        store: where the ranks meet; rank 0 holds it.
        backend: "gloo" or "nccl".
        timeout_s: longest that one operation may take.
    """

    def __init__(self, store: Any, rank: int, size: int, backend: Literal["gloo", "nccl"], timeout_s: float) -> None:
        self._size = size
        before = _threads()
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=timedelta(seconds=timeout_s))
        self._group: Any = cast(Any, dist).group.WORLD
        if backend == "gloo":
            _let_wait_their_turn(_threads() - before)

    def average(self, tensor: torch.Tensor) -> torch.Tensor:
        """Mean over the ranks, in place. Raises CollectiveFailed."""
        try:
            self._group.allreduce([tensor]).wait()  # what `dist.all_reduce` does once it has checked its arguments
        except RuntimeError as error:
            raise CollectiveFailed(f"all-reduce broke off: {error}") from None
        return tensor.div_(self._size)


def _threads() -> set[int]:
    """Of this process, where it is Linux's."""
    tasks = Path("/proc/self/task")
    return {int(task.name) for task in tasks.iterdir()} if tasks.exists() else set()


def _let_wait_their_turn(threads: set[int]) -> None:
    """Have gloo's threads not take the processor from the thread that has just woken them.

    An all-reduce is several messages, and each goes through three threads. As Linux lets it, the thread that is woken
    to read a message takes the place of one that holds a lock which it needs; it tries and tries, and the other one
    comes back only with the scheduler's next tick. On two cores without other work an all-reduce of 9,000 numbers
    took 1.1 ms on average; it takes 0.3 ms so.
    """
    for thread in threads:
        with contextlib.suppress(OSError):  # it has ended
            os.sched_setscheduler(thread, os.SCHED_BATCH, os.sched_param(0))


def open_store(rank: Member, timeout_s: float) -> tuple[str, int]:
    """Open the group's store on a port that the system picks (looking for a free one first would be a race).

    Returns:
        Address and port for the other ranks.
    """
    leave(rank)
    address = cast(Any, ray.util.get_node_ip_address)()
    rank.store = _TCPStore(address, 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=timeout_s))
    return address, rank.store.port


def join(
    rank: Member, place: tuple[str, int], position: int, size: int, backend: Literal["gloo", "nccl"], timeout_s: float
) -> None:
    """Become rank `position` of `size`, meeting the others at `place`."""
    if position == 0:
        store = rank.store
    else:
        leave(rank)
        store = _TCPStore(*place, is_master=False, timeout=timedelta(seconds=timeout_s))
    rank.average = ProcessGroup(store, position, size, backend, timeout_s).average


def leave(rank: Member) -> None:
    """Give up the group that this rank is in, if any; at an iteration's boundary only."""
    rank.average = rank.store = None
    if dist.is_initialized():
        dist.destroy_process_group()

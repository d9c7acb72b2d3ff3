"""One update made by several copies of a policy together, each from its share of the batch's rows.

An update is a generator: it yields the gradient of its rows' mean loss, and goes on with the gradient that it is sent.
Copies that begin alike and are sent the same therefore stay alike.
"""

from collections.abc import Generator, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch

from rltrain.policies.base import LearnInfo

T = TypeVar("T")


class Share(NamedTuple):
    """Part `position` of `size` parts, as equal as they can be, of whatever is divided."""

    position: int
    size: int

    def rows(self, count: int) -> slice:
        """Of so many rows, those of this part; none where there are fewer rows than parts."""
        return slice(count * self.position // self.size, count * (self.position + 1) // self.size)

    def part(self, position: int, size: int) -> "Share":
        """A part of this part."""
        return Share(self.position * size + position, self.size * size)


WHOLE = Share(0, 1)
ALL = slice(None)
"""Every row."""


def alone(update: Generator[torch.Tensor, torch.Tensor, T]) -> T:
    """Drive an update whose own gradients are all there are."""
    try:
        request = next(update)
        while True:
            request = update.send(request)
    except StopIteration as stop:
        outcome: T = stop.value
        return outcome


def weighted(update: Generator[torch.Tensor, torch.Tensor, T], weight: int) -> Generator[torch.Tensor, torch.Tensor, T]:
    """An update whose gradient counts for `weight` steps beside others'.

    Yields float32 (parameters + 1,): the gradient times the weight, then the weight. It is sent the sum of all such
    vectors, or their mean: either way the gradient over everybody's rows is the first part by the last.
    """
    try:
        slope = next(update)
        while True:
            total = yield torch.cat([slope * weight, slope.new_full((1,), weight)])
            slope = update.send(total[:-1] / total[-1])
    except StopIteration as stop:
        outcome: T = stop.value
        return outcome


def together(
    updates: Sequence[Generator[torch.Tensor, torch.Tensor, T]],
) -> Generator[torch.Tensor, torch.Tensor, list[T]]:
    """Drive updates side by side, each maybe on a device of its own; yields the sums of what they yield."""
    requests = [next(update) for update in updates]
    outcomes: list[T] = []
    while not outcomes:
        home = requests[0].device
        total = yield reduce(torch.add, [request.to(home) for request in requests])
        following: list[torch.Tensor] = []
        for update, request in zip(updates, requests, strict=True):
            try:
                following.append(update.send(total.to(request.device)))
            except StopIteration as stop:
                outcomes.append(stop.value)
        requests = following
    return outcomes


def merged_stats(stats: Sequence[dict[str, float]], weights: Sequence[int]) -> dict[str, float]:
    """Of all rows, what was told of each share: extremes of the extremes, the mean by weight of everything else."""
    counted = [(each, weight) for each, weight in zip(stats, weights, strict=True) if weight]
    total = sum(weights)

    def merge(name: str) -> float:
        values = [each[name] for each, _ in counted]
        if name.startswith("min_"):
            return min(values)
        if name.startswith("max_"):
            return max(values)
        return sum(each[name] * weight for each, weight in counted) / total

    return {name: merge(name) for name in counted[0][0]} if counted else {}


def merged(infos: Sequence[LearnInfo], weights: Sequence[int]) -> LearnInfo:
    """What an update tells, out of what each share's does; TD errors in the order of the shares."""
    errors: list[Any] = [info.td_error for info in infos if info.td_error is not None]
    stats = merged_stats([info.stats for info in infos], weights)
    return LearnInfo(stats, np.concatenate(errors) if errors else None)

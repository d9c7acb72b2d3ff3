"""Several flows as one."""

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from rltrain.flow.actors import Future
from rltrain.flow.local import LocalIterator, cannot_wait
from rltrain.flow.metrics import get_metrics
from rltrain.flow.signals import NOT_READY, PROGRESS, Signal

T = TypeVar("T")
Weight = int | Literal["*"]


def Concurrently(  # noqa: N802 - operators of the plan language are written like nouns
    children: Sequence[LocalIterator[Any]],
    *,
    mode: Literal["round_robin", "async"],
    output_indexes: Sequence[int] | None = None,
    round_robin_weights: Sequence[Weight] | None = None,
    name: str = "concurrently",
) -> LocalIterator[Any]:
    """Pull several flows in turn.

    Args:
        children: the flows.
        mode: "round_robin" takes each child's weight of items in order; "async" takes one from whichever is ready.
            In both a child that isn't ready is passed over, and NOT_READY is returned when none is.
        output_indexes: children whose items are handed out, all by default; the others are pulled for their effect.
        round_robin_weights: items in a turn, 1 by default; "*" takes all that is ready.
        name: under which the position is kept in the metrics context, so that a resumed run goes on in turn.
    """
    if mode == "async" and round_robin_weights is not None:
        raise ValueError("round_robin_weights belongs to mode='round_robin'")
    weights: list[Weight] = list(round_robin_weights or [1] * len(children))
    if len(weights) != len(children):
        raise ValueError(f"{len(weights)} weights for {len(children)} children")
    if any(weight != "*" and weight < 1 for weight in weights):
        raise ValueError(f"a weight is a whole number from 1 or '*': {weights}")
    outputs = set(range(len(children)) if output_indexes is None else output_indexes)
    turn, taken = f"{name}/turn", f"{name}/taken"
    finished: set[int] = set()

    def pull() -> Any | Signal:
        counters = get_metrics().counters

        def next_turn() -> None:
            counters[turn] = (counters[turn] + 1) % len(children)
            counters[taken] = 0

        idle = 0
        while idle < len(children):
            index = counters[turn]
            item: Any = NOT_READY
            if index not in finished:
                try:
                    item = children[index].pull()
                except StopIteration:
                    finished.add(index)
            if item is NOT_READY:
                idle += 1
                next_turn()
                continue
            counters[taken] += 1
            weight = weights[index]
            if weight != "*" and counters[taken] >= weight:
                next_turn()
            return item if index in outputs else PROGRESS
        if len(finished) == len(children):
            raise StopIteration
        return NOT_READY

    def waits() -> Sequence[Future]:
        return [future for child in children for future in child.waits()]

    wait = next((child.wait for child in children if child.wait is not cannot_wait), cannot_wait)
    return LocalIterator(pull, waits, wait)

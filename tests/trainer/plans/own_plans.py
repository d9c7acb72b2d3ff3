"""Plans of a user's own, for tests: one that trains, and some that can't."""

from typing import Any

from rltrain.api.config import DQNConfig
from rltrain.flow import LocalIterator
from rltrain.ops import PlanContext, Result
from rltrain.plans.dqn import dqn

steps_seen: list[int] = []


def counted(context: PlanContext[DQNConfig]) -> LocalIterator[Result]:
    """DQN's dataflow, whose results are looked at."""

    def look(result: Result) -> Result:
        steps_seen.append(result.env_steps)
        return result

    return dqn(context).for_each(look)


def without_context() -> None: ...


def breaks(context: PlanContext[Any]) -> LocalIterator[Result]:
    raise KeyError("no such thing")


def gives_a_list(context: PlanContext[Any]) -> list[Result]:
    return []


def gives_numbers(context: PlanContext[Any]) -> LocalIterator[int]:
    return LocalIterator.of([1, 2, 3])


NOT_A_FUNCTION = 3

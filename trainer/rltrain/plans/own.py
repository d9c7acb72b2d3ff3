"""A user's own plan: a function of the same words as the built-in ones, named by the manifest."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rltrain import user_code
from rltrain.api.errors import InvalidManifest, Problem, RltrainError, TrainingFailed
from rltrain.api.job import SpecBase
from rltrain.flow import LocalIterator
from rltrain.ops import Result
from rltrain.plans.registry import PLANS, Plan

_ENDS = "end it with StandardMetricsReporting(flow, context.workers, context.config)"


def plan_of(spec: SpecBase) -> Plan:
    """The plan that a manifest names: a built-in one, or the user's function with what its base has.

    Raises:
        InvalidManifest: the function can't be loaded, or doesn't take a context.
    """
    base = PLANS[spec.base]
    return base if spec.base_plan is None else replace(base, build=_checked(spec.plan, _load(spec.plan)))


def _load(reference: str) -> Callable[[Any], Any]:
    function = user_code.load(reference, "spec.plan", "function")
    if not callable(function):
        raise _refused(f"{reference} is not a function")
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        hint = f"write it as def {reference.rpartition(':')[2]}(context: PlanContext) -> LocalIterator[Result]"
        raise _refused(f"{reference} must take one argument, the plan's context: {error}", hint) from error
    loaded: Callable[[Any], Any] = function
    return loaded


def _checked(reference: str, function: Callable[[Any], Any]) -> Callable[[Any], LocalIterator[Result]]:
    """The function, whose outcome is looked at."""

    def result(item: Any) -> Result:
        if not isinstance(item, Result):
            raise TrainingFailed(f"plan {reference} must bring results, not {type(item).__name__}: {_ENDS}")
        return item

    def build(context: Any) -> LocalIterator[Result]:
        try:
            flow = function(context)
        except RltrainError:
            raise
        except Exception as error:
            raise _refused(f"{reference} can't make its dataflow: {type(error).__name__}: {error}") from error
        if not isinstance(flow, LocalIterator):
            raise _refused(f"{reference} must return the flow of its results, not {type(flow).__name__}", _ENDS)
        return flow.for_each(result)

    return build


def _refused(message: str, hint: str | None = None) -> InvalidManifest:
    return InvalidManifest([Problem("spec.plan", message, hint)])

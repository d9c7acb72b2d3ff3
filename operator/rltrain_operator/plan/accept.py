"""Reading a job's spec as the API server hands it out."""

from pydantic import ValidationError

from rltrain.api.errors import InvalidManifest, Problem
from rltrain.api.job import PLAN_SPECS, RLTrainingJob
from rltrain_operator.plan.observed import JobView


def accept(view: JobView) -> RLTrainingJob:
    """The job as a model; of its metadata only what renders it.

    Raises:
        InvalidManifest: with all problems at once.
    """
    metadata = {"name": view.name, "namespace": view.namespace, "uid": view.uid, "generation": view.generation}
    tree = {key: view.raw.get(key) for key in ("apiVersion", "kind", "spec")}
    try:
        return RLTrainingJob.model_validate({**tree, "metadata": metadata})
    except ValidationError as error:
        raise InvalidManifest([_problem(each["loc"], each["msg"]) for each in error.errors()], view.name) from error


def _problem(location: tuple[int | str, ...], message: str) -> Problem:
    # The tag of the union is no part of the path: spec.DQN.config -> spec.config.
    parts = [part for depth, part in enumerate(location) if not (depth == 1 and part in PLAN_SPECS)]
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).lstrip(".")
    return Problem(path, message)

"""Reading a job's spec as the API server hands it out."""

from pydantic import ValidationError

from rltrain.api.errors import InvalidManifest
from rltrain.api.job import RLTrainingJob
from rltrain.api.problems import guess_plan, problems_of
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
        raise InvalidManifest(problems_of(error, guess_plan(tree["spec"])), view.name) from error


"""Reading a job's spec as the API server hands it out."""

from rltrain.api.check import check
from rltrain.api.document import unplaced
from rltrain.api.errors import InvalidManifest
from rltrain.api.job import RLTrainingJob
from rltrain_operator.plan.observed import JobView


def accept(view: JobView) -> RLTrainingJob:
    """The job as a model; of its metadata only what renders it.

    Raises:
        InvalidManifest: with all problems at once.
    """
    metadata = {"name": view.name, "namespace": view.namespace, "uid": view.uid, "generation": view.generation}
    tree = {key: view.raw.get(key) for key in ("apiVersion", "kind", "spec")}
    job, problems = check(unplaced({**tree, "metadata": metadata}))
    if job is None:
        raise InvalidManifest(problems, view.name)
    return job

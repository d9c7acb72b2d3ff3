"""Reading a job's spec as the API server hands it out."""

from rltrain.api import names
from rltrain.api.check import check
from rltrain.api.document import unplaced
from rltrain.api.errors import InvalidManifest
from rltrain.api.job import RLTrainingJob
from rltrain_operator.render import Object


def accept(metadata: Object, spec: Object | None) -> RLTrainingJob:
    """The job as a model; of its metadata only what renders it.

    Raises:
        InvalidManifest: with all problems at once.
    """
    tree = {"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": metadata, "spec": spec}
    job, problems = check(unplaced(tree))
    if job is None:
        raise InvalidManifest(problems, metadata["name"])
    return job

"""What every rendered object is made from: the job and the operator's own configuration."""

from dataclasses import dataclass, field
from typing import Any

from rltrain.api import names
from rltrain.api.job import RLTrainingJob
from rltrain.api.seen import Object as Object

OFFLINE_UID = "00000000-0000-0000-0000-000000000000"
"""Stands in for the UID of a job that the API server hasn't seen."""

ANNOTATION_HASH = "rltrain.dev/rendered"
"""Hash of the object as rendered: one that has it needs no apply."""
ANNOTATION_MANIFEST = "rltrain.dev/manifest"
"""Hash of the manifest that a Job, or a Workload, was made for: templates are immutable."""
ANNOTATION_GANG = "rltrain.dev/gang"
"""Who places a Job's pods together with those of the others."""


@dataclass(frozen=True)
class OperatorConfig:
    """What the operator adds to a job.

    Attributes:
        trainer_image: image of the job's pods where the manifest names none.
        image_pull_policy: pull policy of that image; the kubelet's own rule when not given.
        image_pull_secrets: Secrets to pull it with, by name, where the manifest names neither image nor Secrets.
        egress: what a job's pods may reach beside one another, DNS and the API server, as rules of a NetworkPolicy;
            None for everything.
    """

    trainer_image: str
    image_pull_policy: str | None = None
    image_pull_secrets: tuple[str, ...] = ()
    egress: tuple[Object, ...] | None = field(default=None, hash=False)


@dataclass(frozen=True)
class Served:
    """What of the cluster shapes a job's objects.

    Attributes:
        kueue: the newest version of Kueue's API that is served and known here.
        volcano: whether Volcano's PodGroups are served.
        pod_groups: the newest version of Kubernetes' own PodGroups that is served and known here.
        api_server: addresses and ports behind the API server's Service; none where nobody needs them.
    """

    kueue: str | None = None
    volcano: bool = False
    pod_groups: str | None = None
    api_server: tuple[tuple[str, int], ...] = ()


NONE_SERVED = Served()


@dataclass(frozen=True)
class Context:
    """One job to render, and how."""

    job: RLTrainingJob
    config: OperatorConfig
    served: Served = NONE_SERVED

    @property
    def name(self) -> str:
        return self.job.metadata.name

    @property
    def namespace(self) -> str:
        return self.job.metadata.namespace or "default"

    @property
    def uid(self) -> str:
        return self.job.metadata.uid or OFFLINE_UID

    @property
    def service_account(self) -> str:
        """Identity of the job's pods: the user's, or one of our own that may only report progress."""
        return self.job.spec.service_account_name or f"{self.name}-driver"

    def labels(self, role: str | None = None) -> dict[str, str]:
        """Labels of a child, or of a role's pods."""
        labels = {names.LABEL_MANAGED_BY: names.MANAGED_BY, names.LABEL_JOB: self.name, names.LABEL_JOB_UID: self.uid}
        return labels if role is None else {**labels, names.LABEL_ROLE: role}

    def object(self, api_version: str, kind: str, name: str, *, role: str | None = None, **parts: Any) -> Object:
        """A child that goes when its job goes."""
        owner = {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        metadata = {
            "name": name,
            "namespace": self.namespace,
            "labels": self.labels(role),
            "ownerReferences": [owner],
        }
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}

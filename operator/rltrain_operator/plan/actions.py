"""What a visit leads to."""

from collections.abc import Mapping
from dataclasses import dataclass

from rltrain.api import names
from rltrain_operator.plan.conditions import Event
from rltrain_operator.plan.observed import ChildJob, ChildKey
from rltrain_operator.plan.workload import Told, Workload
from rltrain_operator.render import Object, job_name

CREATE_ONLY = frozenset({"Secret", "PersistentVolumeClaim"})
"""Kinds that are made once and then left alone."""


@dataclass(frozen=True)
class Change:
    """Fields of a Job's spec to set while it runs.

    Attributes:
        job: the Job.
        spec: the fields.
    """

    job: ChildJob
    spec: Mapping[str, int]


@dataclass(frozen=True)
class Plan:
    """What to do about a job, and what to say.

    Attributes:
        status: our part of the job's status; None leaves it alone.
        create: children to make where there is none of the name.
        apply: children to apply, in this order.
        change: what to set in Jobs that are there.
        rehearse: Jobs to be; unless the API server would take them all, nothing is done.
        delete: Jobs to delete, with their pods.
        retire: the same for Jobs that stay to be seen until their pods are gone.
        tell: what a Workload is to say from now on, in its status.
        release: a Workload to delete: its quota is free for others.
        remove: delete the job itself.
        events: what to tell.
        needs_pods: list the job's pods and plan again before acting.
        needs: objects of the whole cluster to read, and then to plan again before acting.
        look_around: the cluster lacks a scheduler that the job names; look which it has.
        again_in: seconds until the next visit when nothing happens before; None waits for the resync.
    """

    status: Object | None = None
    create: tuple[Object, ...] = ()
    apply: tuple[Object, ...] = ()
    change: tuple[Change, ...] = ()
    rehearse: tuple[Object, ...] = ()
    delete: tuple[ChildJob, ...] = ()
    retire: tuple[ChildJob, ...] = ()
    tell: Told | None = None
    release: Workload | None = None
    remove: bool = False
    events: tuple[Event, ...] = ()
    needs_pods: bool = False
    needs: tuple[ChildKey, ...] = ()
    look_around: bool = False
    again_in: float | None = None


def child_key(child: Object) -> ChildKey:
    return child["kind"], child["metadata"]["name"]


def job_names(job: str) -> tuple[str, ...]:
    """Names that a job's Jobs may have."""
    return tuple(job_name(job, role) for role in names.ROLES)

"""How many workers a running job has: as its manifest says by now, and, where it is to be told, what suits it."""

import logging
import os
import time
from collections.abc import Callable
from typing import Final

from rltrain.api.errors import StorageFull
from rltrain.api.job import RLTrainingJob
from rltrain.api.resolve import resolved_yaml
from rltrain.api.roles import RolloutsRole
from rltrain.flow import get_metrics
from rltrain.plans.registry import PLANS
from rltrain.runtime.autoscale import Load, better
from rltrain.runtime.build import Training
from rltrain.runtime.edits import needs_restart, with_edits
from rltrain.runtime.mounted import MountedManifest
from rltrain.runtime.roles import replicas_of, workers_role
from rltrain.runtime.rundir import RunDirectory

log = logging.getLogger(__name__)

MEASURE_SECONDS: Final = 60.0
"""How long a number of workers is looked at before another is proposed; RLTRAIN_AUTOSCALE_SECONDS says otherwise."""


class Scaling:
    """Follows the manifest, and measures for `rollouts.autoscale`.

    Args:
        job: as the driver starts with it.
        directory: gets the manifest as it is followed.
        manifest: the mounted one; None where nobody edits a running job.

    Attributes:
        job: as it is followed.
        proposed: see `Progress.rollouts_proposed`.
    """

    def __init__(
        self,
        job: RLTrainingJob,
        directory: RunDirectory,
        manifest: MountedManifest | None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.proposed: int | None = None
        self.job = job
        self._directory = directory
        self._manifest = manifest
        self._monotonic = monotonic
        self._window: Window | None = None
        self._measure_s = float(os.environ.get("RLTRAIN_AUTOSCALE_SECONDS", MEASURE_SECONDS))

    def follow(self, training: Training) -> None:
        """Between two steps of training: have as many workers as the manifest says.

        Raises:
            RltrainError: a rank is lost meanwhile, and that is hopeless.
        """
        newer = None if self._manifest is None else self._manifest.changed()
        if newer is None:
            return
        job = with_edits(self.job, newer)
        before, after = replicas_of(workers_role(self.job)), replicas_of(workers_role(job))
        if needs_restart(before, after):
            log.warning("from %d to %d workers: this takes the driver's next start", before, after)
            return
        if job == self.job:
            return
        self.job = job
        training.resize(job)
        if before != after:
            log.info("%d workers are wanted now, %d were", after, before)
        try:
            self._directory.write_manifest(resolved_yaml(job))
        except StorageFull as error:
            log.warning("%s; training goes on", error)

    def measure(self, training: Training) -> None:
        """At a report: propose another number of rollout workers where that pays, at most every minute."""
        role = workers_role(self.job)
        if not isinstance(role, RolloutsRole) or not role.autoscale:
            self.proposed = self._window = None
            return
        workers, now = training.workers, self._monotonic()
        if len(workers.actors()) < workers.wanted:
            self._window = None  # until all of them are there
        elif self._window is None or self._window.workers != workers.wanted:
            self._window = Window(workers.wanted, now)
        elif now - self._window.begun >= self._measure_s:
            alternating = not PLANS[self.job.spec.base].sharded
            load = self._window.load(now, alternating=alternating)
            number = workers.wanted + better(load, workers.wanted, alternating=alternating)
            proposed = min(max(number, role.min_replicas or 1), role.max_replicas or number)
            if proposed != self.proposed:
                log.info("%d workers suit the learner, %d there are: %s", proposed, workers.wanted, load)
            self.proposed, self._window = proposed, Window(workers.wanted, now)


class Window:
    """Time over which a load is measured.

    Args:
        workers: in it.
        begun: when.
    """

    def __init__(self, workers: int, begun: float) -> None:
        self.workers = workers
        self.begun = begun
        self._sampled, self._waited = _totals()

    def load(self, now: float, *, alternating: bool) -> Load:
        """Since it was begun."""
        sampled, waited = _totals()
        seconds = now - self.begun
        if alternating:
            return Load(waiting=(sampled - self._sampled) / seconds, sampling=(sampled - self._sampled) / seconds)
        return Load((waited - self._waited) / seconds, (sampled - self._sampled) / (seconds * self.workers))


def _totals() -> tuple[float, float]:
    """Seconds in which workers have sampled, and in which the learner has waited."""
    metrics = get_metrics()
    return metrics.timer("sample").total, metrics.timer("learner_dequeue").total

"""What the processes of a Ray session have in common."""

import os

from rltrain.flow.ray_backend import RayBackend

SETTING = "RAY_task_events_report_interval_ms"


class _Member:
    """Stands for any actor."""


def report_interval(_: _Member) -> str | None:
    return os.environ.get(SETTING)


def test_no_process_reports_each_call_to_rays_control_store_which_would_keep_them_all(ray_backend: RayBackend) -> None:
    actor = ray_backend.create(_Member, role="workers", index=1)
    assert ray_backend.result(actor.apply(report_interval)) == "0", "Ray's word for never"

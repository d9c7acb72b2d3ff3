"""What the processes of a Ray session have in common."""

from rltrain.flow.ray_backend import RayBackend


class _Member:
    """Stands for any actor."""


def kept_of_calls(_: _Member) -> int:
    from ray._raylet import Config

    interval: int = Config.task_events_report_interval_ms()
    return interval


def test_ray_keeps_no_record_of_each_call_which_would_fill_the_control_stores_memory(ray_backend: RayBackend) -> None:
    actor = ray_backend.create(_Member, role="workers", index=0)
    assert ray_backend.result(actor.apply(kept_of_calls)) == 0

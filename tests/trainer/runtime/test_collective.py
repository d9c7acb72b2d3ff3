"""The process group of ranks and learners, over gloo."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import torch
import torch.distributed as dist

from rltrain.runtime.collective import ProcessGroup


def test_gloos_threads_dont_take_the_processor_from_the_one_that_wakes_them() -> None:
    store = cast(Any, dist).TCPStore(
        "127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=30)
    )
    before = threads()
    group = ProcessGroup(store, 0, 1, "gloo", 30.0)
    try:
        assert group.average(torch.tensor([1.0, 2.0])).tolist() == [1.0, 2.0]
        gloos = threads() - before
        assert len(gloos) > 1  # the one that reads sockets, and those that run operations
        assert {os.sched_getscheduler(thread) for thread in gloos} == {os.SCHED_BATCH}
        assert {os.sched_getscheduler(thread) for thread in before & threads()} == {os.SCHED_OTHER}
    finally:
        dist.destroy_process_group()


def threads() -> set[int]:
    return {int(task.name) for task in Path("/proc/self/task").iterdir()}

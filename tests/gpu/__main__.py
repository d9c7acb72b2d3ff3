"""`python -m gpu`: try what needs a GPU; where there is none, say so."""

import os
import sys
import time
from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist

from gpu.checks import CheckFailed, check_learner, check_ranks


def main() -> int:
    """Returns 1 when something isn't right."""
    if not torch.cuda.is_available():
        print("gpu-check: skipped, there is no GPU that torch can use here")
        return 0
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
    gpus = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    print(f"gpu-check: torch {torch.__version__}, {len(gpus)} x {torch.cuda.get_device_name(0)}")
    if not dist.is_nccl_available():
        print("gpu-check: this torch has no NCCL")
        return 1
    checks: dict[str, Callable[[], None]] = {
        "a learner on one GPU": partial(check_learner, gpus[0]),
        "a learner on two devices of its process": partial(check_learner, gpus[0], gpus[-1]),
        "two gloo ranks with tensors on GPUs": partial(check_ranks, "gloo", [gpus[0], gpus[-1]]),
        # NCCL takes a GPU for each rank; with one it still is initialised and used.
        f"{len(gpus[:2])} NCCL rank(s)": partial(check_ranks, "nccl", gpus[:2]),
    }
    failed = 0
    for name, check in checks.items():
        begun = time.perf_counter()
        try:
            check()
        except (CheckFailed, RuntimeError) as error:
            failed += 1
            print(f"  failed  {name}: {error}")
        else:
            print(f"  ok      {name} ({time.perf_counter() - begun:.1f} s)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

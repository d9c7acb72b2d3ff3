"""What `make gpu-check` does on GPUs, done on CPUs."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from gpu import checks
from gpu.checks import CheckFailed, check_learner, check_ranks


def test_the_checks_pass_for_cpus() -> None:
    check_learner("cpu")
    check_learner("cpu", "cpu")
    check_ranks("gloo", ["cpu", "cpu"])


def test_a_learner_that_is_off_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = checks.expected()
    name = next(iter(wrong["weights"]))
    wrong["weights"][name] = wrong["weights"][name] + np.float32(1e-2)
    monkeypatch.setattr(checks, "expected", lambda: wrong)
    with pytest.raises(CheckFailed, match=f"weights {name} is off by 0.01"):
        check_learner("cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_it_says_that_it_was_skipped() -> None:
    done = subprocess.run([sys.executable, "-m", "gpu"], capture_output=True, text=True, check=False)
    assert (done.returncode, "skipped" in done.stdout) == (0, True), done.stderr

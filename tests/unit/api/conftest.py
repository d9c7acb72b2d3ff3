"""Manifests as text."""

from collections.abc import Callable

import pytest

from rltrain.api.errors import InvalidManifest, Problem
from rltrain.api.load import load_text

GOOD = """\
apiVersion: rltrain.dev/v1alpha1
kind: RLTrainingJob
metadata: {name: cartpole}
spec:
  plan: %s
  env: {id: CartPole-v1}
  stop: {envSteps: 2000}
"""


def manifest(body: str = "", plan: str = "DQN") -> str:
    """A good manifest with lines of `spec` added from line 8 on (line 9 for DDPPO)."""
    workers = "  workers: {replicas: 2}\n" if plan == "DDPPO" and not body.startswith("workers:") else ""
    return GOOD % plan + workers + "".join(f"  {line}\n" for line in body.splitlines())


@pytest.fixture
def problems() -> Callable[..., list[Problem]]:
    """All that is wrong with a text."""

    def of(text: str, *overrides: str) -> list[Problem]:
        with pytest.raises(InvalidManifest) as refused:
            load_text(text, overrides)
        return list(refused.value.problems)

    return of

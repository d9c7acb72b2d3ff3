"""Jobs for the operator's tests."""

from typing import Any

from rltrain.api.job import RLTrainingJob
from rltrain_operator.render import OperatorConfig

CONFIG = OperatorConfig(trainer_image="trainer:1")
UID = "7f9c24e8-3b12-4fef-91e0-b3c0fd1aee6a"


def manifest(plan: str = "DQN", name: str = "cartpole", uid: str = UID, **spec: Any) -> dict[str, Any]:
    """An RLTrainingJob as the API server hands it out."""
    roles = {"workers": {"replicas": 2}} if plan == "DDPPO" else {"rollouts": {"replicas": 1}}
    base = {"plan": plan, "env": {"id": "CartPole-v1"}, "stop": {"envSteps": 1000}, **roles}
    return {
        "apiVersion": "rltrain.dev/v1alpha1",
        "kind": "RLTrainingJob",
        "metadata": {"name": name, "namespace": "team", "uid": uid, "generation": 1},
        "spec": base | spec,
    }


def job(plan: str = "DQN", name: str = "cartpole", uid: str = UID, **spec: Any) -> RLTrainingJob:
    return RLTrainingJob.model_validate(manifest(plan, name, uid, **spec))

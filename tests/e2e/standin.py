"""Jobs whose pods only pretend: what the operator does is seen in seconds, without Ray."""

from typing import Any

from e2e.kube import Object

_HEAD = """
import json, os, signal, socket, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN if os.environ["STUBBORN"] else lambda *_: sys.exit(143))
listener = socket.create_server(("", 6379))
time.sleep(float(os.environ["LIFE"]))
words = {"reason": "StopCriterionReached", "stop_reason": "env_steps", "env_steps": 1000, "episode_return_mean": 1.0}
open("/dev/termination-log", "w").write(os.environ.get("WORDS") or json.dumps(words))
sys.exit(int(os.environ["CODE"]))
"""
_NODE = """
import signal, socket, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
listener = socket.create_server(("", 6380))
time.sleep(3600)
"""


def standin(
    name: str,
    image: str,
    *,
    life: float = 3600,
    exit_code: int = 0,
    words: str = "",
    stubborn_seconds: int = 0,
    **spec: Any,
) -> Object:
    """A DQN job with one rollout pod.

    Args:
        name: the job's name.
        image: any image with Python.
        life: seconds that its head lives once it is ready.
        exit_code: of the head.
        words: the head's termination message.
        stubborn_seconds: how long its head doesn't listen when it is told to end.
        spec: further parts of the spec.
    """
    env = {"LIFE": str(life), "CODE": str(exit_code), "WORDS": words, "STUBBORN": "yes" if stubborn_seconds else ""}
    head = _template(_HEAD, env)
    if stubborn_seconds:
        head["spec"]["terminationGracePeriodSeconds"] = stubborn_seconds
    return {
        "apiVersion": "rltrain.dev/v1alpha1",
        "kind": "RLTrainingJob",
        "metadata": {"name": name},
        "spec": {
            "plan": "DQN",
            "env": {"id": "CartPole-v1"},
            "stop": {"envSteps": 1000},
            "image": image,
            "head": {"template": head},
            "rollouts": {"replicas": 1, "template": _template(_NODE, {})},
            **spec,
        },
    }


def _template(script: str, env: dict[str, str]) -> Object:
    container = {
        "name": "rltrain",
        "command": ["python", "-c", script],
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "readinessProbe": {"periodSeconds": 1},
    }
    return {"spec": {"containers": [container]}}

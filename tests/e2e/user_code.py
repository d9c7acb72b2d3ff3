"""A user's own code: an environment that leaves the machine to others, so that a job trains beside other work."""

from e2e.kube import Object

CONFIG_MAP = "my-envs"
ENV = "my_envs:Slow"
HURRY = "/tmp/hurry"
"""A file in a pod: once it is there, that pod's environments take no time any more."""

_MODULE = f'''
import os
import time
from gymnasium.envs.classic_control import CartPoleEnv

class Slow(CartPoleEnv):
    """Takes its time for each step, without using the processor."""

    def __init__(self, seconds=0.002, **kwargs):
        super().__init__(**kwargs)
        self.seconds = seconds

    def step(self, action):
        if not os.path.exists("{HURRY}"):
            time.sleep(self.seconds)
        return super().step(action)
'''


def config_map() -> Object:
    """The module as `spec.code.configMap` takes it."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP},
        "data": {f"{ENV.partition(':')[0]}.py": _MODULE},
    }

"""Weight sync on its own: publishing a network of 256x256 to two workers in processes of their own."""

import json
import sys
import time

from rltrain.api.config import DQNConfig
from rltrain.api.env import EnvSpec
from rltrain.rollout.worker import RolloutWorker, WorkerSpec
from rltrain.runtime.session import local_session, prepare_environment
from rltrain.state import Array


class Holder:
    """A worker's policy, without its environments."""

    def __init__(self) -> None:
        self.policy = RolloutWorker(SPEC).policy

    def take(self, weights: dict[str, Array]) -> None:
        self.policy.set_weights(weights)


SPEC = WorkerSpec("DQN", EnvSpec(id="CartPole-v1"), DQNConfig(hiddens=(256,)), seed=0, num_workers=2)


def main(seconds: float) -> None:
    """Print the result as a line of JSON."""
    prepare_environment()
    with local_session(2):
        from rltrain.flow.ray_backend import RayBackend  # Ray reads its settings when it is imported

        backend = RayBackend()
        actors = [backend.create(Holder, role="rollouts", index=index) for index in (1, 2)]
        policy = RolloutWorker(SPEC).policy
        times: list[float] = []
        begun = time.perf_counter()
        while time.perf_counter() - begun < seconds or len(times) < 20:
            start = time.perf_counter()
            shared = backend.share(policy.get_weights())
            for future in [actor.apply(Holder.take, shared) for actor in actors]:
                backend.result(future)
            times.append(time.perf_counter() - start)
    times.sort()
    print(json.dumps({"syncs_per_s": 1 / times[len(times) // 2]}))


if __name__ == "__main__":
    main(float(sys.argv[1]))

"""Ape-X that only samples: env steps a second of processor time of worker, shard and driver together.

Two workers of 64 environments, 3-step returns and first priorities; a shard in a process of its own stores fragments.
"""

import json
import sys
import time

from rltrain.api.config import ApexConfig, ModelConfig
from rltrain.api.env import EnvSpec
from rltrain.flow import Future
from rltrain.ops.rollouts import deliver_fragment
from rltrain.replay.buffer import ReplayBuffer
from rltrain.replay.shard import ReplayShard
from rltrain.rollout.worker import RolloutWorker, WorkerSpec
from rltrain.runtime.session import local_session, prepare_environment

WORKERS, IN_FLIGHT, WARMUP = 2, 2, 50_000
CONFIG = ApexConfig(
    model=ModelConfig(fcnet_hiddens=(64, 64)), hiddens=(), n_step=3, num_envs_per_worker=64, compile="Always"
)


def worker(index: int) -> RolloutWorker:
    """A worker of Ape-X."""
    return RolloutWorker(
        WorkerSpec("Apex", EnvSpec(id="CartPole-v1"), CONFIG, seed=0, index=index, num_workers=WORKERS)
    )


def shard() -> ReplayShard:
    """The only shard."""
    return ReplayShard(ReplayBuffer(500_000), 0)


def processor_time(target: object) -> float:
    """Of the actor's process."""
    return time.process_time()


def main(seconds: float) -> None:
    """Print the result as a line of JSON."""
    prepare_environment()
    with local_session(WORKERS + 1):
        from rltrain.flow.ray_backend import RayBackend  # Ray reads its settings when it is imported

        backend = RayBackend()
        workers = [backend.create(lambda i=i: worker(i), role="rollouts", index=i) for i in range(1, WORKERS + 1)]
        store = backend.create(shard, role="replay", index=1)
        actors = [*workers, store]
        flying: list[Future] = []
        adds: list[Future] = []
        steps = 0

        def pump(until: float) -> None:
            nonlocal steps, flying, adds
            while time.perf_counter() < until:
                for actor in workers:
                    for _ in range(IN_FLIGHT - sum(future.actor is actor for future in flying)):
                        flying.append(actor.apply_split(deliver_fragment, steps, WORKERS, None))
                for future in backend.wait(flying, 1.0):
                    flying.remove(future)
                    info, experience = backend.result(future)
                    steps += info.count
                    adds.append(store.apply(ReplayShard.add, experience))
                for future in backend.wait(adds, 0.0) if adds else ():
                    adds.remove(future)
                    backend.result(future)

        def spent() -> float:
            return time.process_time() + sum(backend.result(actor.apply(processor_time)) for actor in actors)

        while steps < WARMUP:  # native code may have to be made first
            pump(time.perf_counter() + 0.5)
        first, begun, before = steps, time.perf_counter(), spent()
        pump(begun + seconds)
        took, cpu = time.perf_counter() - begun, spent() - before
        print(json.dumps({"steps_per_s": (steps - first) / cpu, "steps_per_wall_s": (steps - first) / took}))


if __name__ == "__main__":
    main(float(sys.argv[1]))

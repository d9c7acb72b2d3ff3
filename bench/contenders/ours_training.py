"""rltrain: env steps a second of a whole run by the command line, from the lines of its results.

Also the seconds from the command's start to the first update, the share of time in which an Ape-X learner had nothing
to do, and how much more memory all processes hold at the end than after a quarter of the time.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CARTPOLE = {"id": "CartPole-v1"}
PENDULUM = {"id": "Pendulum-v1"}
MLP_64 = {"fcnet_hiddens": [64, 64], "fcnet_activation": "tanh"}
QUICK = {"timesteps_per_iteration": 200, "min_time_s_per_reporting": 1.0}
DQN = {
    "model": {"fcnet_hiddens": [256], "fcnet_activation": "tanh"},
    "hiddens": [],
    "dueling": False,
    "double_q": False,
}
"""As Stable-Baselines3 has it, but for the replay's priorities."""
DDPPO = {"model": MLP_64, "sgd_minibatch_size": 50, "num_sgd_iter": 10}
PIXELS = {"num_envs_per_worker": 4, "rollout_fragment_length": 128, "sgd_minibatch_size": 256, "num_sgd_iter": 2}
"""As the paper has it: 4 environments a rank, 128 steps, 2 epochs of 2 minibatches (Wijmans et al. 2020)."""
SAC = {"policy": "SAC", "learning_starts": 500, **QUICK}
APEX = {
    **{"model": MLP_64, "hiddens": [], "num_envs_per_worker": 64, "n_step": 3, "learning_starts": 10_000, **QUICK},
    **{"buffer_size": 100_000, "optimizer": {"num_replay_buffer_shards": 1}},
}

SPECS: dict[str, dict[str, Any]] = {
    "dqn": {"plan": "DQN", "env": CARTPOLE, "config": DQN},
    "ppo": {"plan": "DDPPO", "env": CARTPOLE, "config": DDPPO, "workers": {"replicas": 2}},
    "ppo1": {"plan": "DDPPO", "env": CARTPOLE, "config": DDPPO, "workers": {"replicas": 1}},
    "pixels": {"plan": "DDPPO", "env": {"id": "pixels:Pixels"}, "config": PIXELS, "workers": {"replicas": 2}},
    "pixels1": {"plan": "DDPPO", "env": {"id": "pixels:Pixels"}, "config": PIXELS, "workers": {"replicas": 1}},
    "sac": {"plan": "OffPolicy", "env": PENDULUM, "config": SAC},
    "apex": {"plan": "Apex", "env": CARTPOLE, "config": APEX, "rollouts": {"replicas": 2}},
}
WARMUP = {"dqn": 1500, "ppo": 3000, "ppo1": 3000, "pixels": 1024, "pixels1": 512, "sac": 520, "apex": 20_000}


def main(name: str, seconds: float, mode: str) -> None:
    """Run until `seconds` after the warm-up, and print the result as a line of JSON."""
    spec = SPECS[name]
    spec["config"] = {**spec["config"], "compile": mode}
    spec |= {"seed": 1, "stop": {"envSteps": 10**9}, "checkpoint": {"everySeconds": 3600}}
    job = {"apiVersion": "rltrain.dev/v1alpha1", "kind": "RLTrainingJob", "metadata": {"name": f"bench-{name}"}}
    with tempfile.TemporaryDirectory() as folder:
        manifest, run = Path(folder) / "job.yaml", Path(folder) / "run"
        manifest.write_text(json.dumps({**job, "spec": spec}))
        shutil.copy(Path(__file__).with_name("pixels.py"), folder)
        command = [str(Path(sys.executable).parent / "rltrain"), "run", str(manifest), "--out", str(run)]
        begun = time.perf_counter()
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "NO_COLOR": "1"})
        try:
            result = watch(run / "results.jsonl", process, WARMUP[name], seconds, begun)
        finally:
            process.terminate()
            process.wait()
        if not result:
            sys.exit((Path(folder) / "log").read_text()[-2000:])
    print(json.dumps(result))


def watch(results: Path, process: "subprocess.Popen[bytes]", warmup: int, seconds: float, begun: float) -> Any:
    """Rates between the first line after the warm-up and the last; nothing if the run ended before."""
    to_update: float | None = None
    lines: list[dict[str, Any]] = []
    cpu = quarter = 0.0
    while process.poll() is None:
        time.sleep(0.2)
        written = results.read_text() if results.exists() else ""
        told = [json.loads(line) for line in written[: written.rfind("\n") + 1].splitlines()]
        if to_update is None and told and told[-1]["trained_steps"]:
            to_update = time.perf_counter() - begun
        told = [line for line in told if line["env_steps"] >= warmup]
        if told and not lines:
            cpu = cpu_seconds(process.pid)
        lines = told
        passed = lines[-1]["time_s"] - lines[0]["time_s"] if lines else 0.0
        if not quarter and passed >= seconds / 4:
            quarter = resident(process.pid)
        if passed >= seconds:
            steps = lines[-1]["env_steps"] - lines[0]["env_steps"]
            return {
                "steps_per_s": steps / passed,
                "steps_per_cpu_s": steps / (cpu_seconds(process.pid) - cpu),
                "trained_per_s": (lines[-1]["trained_steps"] - lines[0]["trained_steps"]) / passed,
                "first_update_s": to_update,
                "idle": idle([line["timers_ms"] for line in lines]),
                "memory_growth": resident(process.pid) / quarter,
                "timers_ms": lines[-1]["timers_ms"],
            }
    return None


def idle(timers: list[dict[str, float]]) -> float | None:
    """Share of its time in which a learner beside the driver waited for a batch."""
    waited = sum(each.get("learner_dequeue", 0.0) for each in timers)
    overall = sum(each.get("learner_overall", 0.0) for each in timers)
    return waited / overall if overall else None


def resident(pid: int) -> float:
    """Bytes that a process and all that it has started hold; of what they share each has its part."""
    total, waiting = 0, [pid]
    while waiting:
        process = Path("/proc") / str(waiting.pop())
        try:
            rollup = (process / "smaps_rollup").read_text()
            waiting += [
                int(child) for task in (process / "task").iterdir() for child in (task / "children").read_text().split()
            ]
        except OSError:
            continue  # it has ended
        total += sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return 1024.0 * total


def cpu_seconds(pid: int) -> float:
    """Processor time of the driver's process, without the workers'."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "Always")

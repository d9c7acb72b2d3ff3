"""`rltrain head`: a job's Ray head, and the driver of its plan."""

import json
import logging
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from rltrain.api import names
from rltrain.api.errors import InvalidInput, RltrainError, TrainingFailed
from rltrain.api.finite import finite
from rltrain.api.job import RLTrainingJob
from rltrain.flow import Actor
from rltrain.runtime.interrupts import Interrupts
from rltrain.runtime.node import answers
from rltrain.runtime.outcome_so_far import OutcomeSoFar
from rltrain.runtime.pod import Pod, start_ray
from rltrain.runtime.processes import adopt_orphans, kill_descendants
from rltrain.runtime.result import RunResult
from rltrain.runtime.session import STARTS, cluster_session, prepare_environment

if TYPE_CHECKING:
    from rltrain.runtime.mounted import MountedManifest
    from rltrain.runtime.rundir import RunDirectory

log = logging.getLogger(__name__)

RAY_START_SECONDS: Final = 120.0
JOIN_SECONDS: Final = 30.0
"""How long a head that finds its job finished waits for nodes to come and hear of it."""
LEAVE_SECONDS: Final = 60.0
"""How long a head waits at most for its nodes to leave."""
ACTOR_SECONDS: Final = 5.0
"""How long actors have to pass the word on, before nodes are told by a process started for that."""
TERMINATION_BYTES: Final = 3000
FOR_GOOD: Final = (names.EXIT_DONE, names.EXIT_DEADLINE)
"""Ends of training after which no head is started again; so does exit 2, which more than training may end in."""


def serve() -> int:
    """Start Ray, train, tell the nodes. Returns the exit code; 0 means finished and nothing else."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    prepare_environment()
    pod = Pod.from_environment()
    adopt_orphans()
    with Interrupts() as interrupts:
        try:
            with _ray_head(pod, interrupts):
                outcome = _work(pod, interrupts)
        except RltrainError as error:
            outcome = _failed(error)
        except Exception as error:
            log.exception("unexpected error")
            outcome = _failed(TrainingFailed(f"{type(error).__name__}: {error}"))
        finally:
            kill_descendants()
    write_termination_log(pod.termination_log, outcome)
    if outcome.message:
        log.error("%s", outcome.message)
    return outcome.exit_code


def _work(pod: Pod, interrupts: Interrupts) -> RunResult:
    """Train, unless it has been done; what is over for good is written down before anybody is told."""
    from rltrain.api.load import load_job
    from rltrain.runtime.mounted import MountedManifest
    from rltrain.runtime.rundir import RunDirectory

    directory = RunDirectory(pod.run_directory)
    earlier = directory.outcome()
    if earlier is not None:
        log.info("this job is finished already: %s", earlier.stop_reason)
        tell_nodes([], JOIN_SECONDS)
        return earlier
    try:
        manifest = MountedManifest(pod.manifest)  # an edit after this is seen
        job = load_job(pod.manifest, [])
        directory = RunDirectory(pod.run_directory, job.spec.checkpoint.keep)
        directory.open()
        return _train(pod, job, directory, manifest, interrupts)
    except InvalidInput as error:
        outcome = _failed(error)
        directory.open()
        directory.finish(outcome)
        tell_nodes([])
        return outcome


def _train(
    pod: Pod, job: RLTrainingJob, directory: "RunDirectory", manifest: "MountedManifest", interrupts: Interrupts
) -> RunResult:
    from rltrain.flow.ray_backend import RayBackend
    from rltrain.runtime.console import PlainConsole
    from rltrain.runtime.kubernetes_progress import kubernetes_progress
    from rltrain.runtime.roles import gpus_by_role
    from rltrain.runtime.train import train

    resume_from = job.spec.checkpoint.resume_from
    progress = kubernetes_progress(pod)
    backend = RayBackend(gpus_by_role(job))
    outcome = train(
        job,
        directory,
        owner=pod.pod_uid,
        resume_from=None if resume_from is None else pod.data / resume_from,
        session=lambda: nullcontext(backend),
        watchers=[PlainConsole(sys.stderr), *([progress] if progress else [])],
        interrupts=interrupts,
        for_good=lambda outcome: outcome.exit_code in FOR_GOOD,
        manifest=manifest,
    )
    if outcome.state != "Interrupted":
        tell_nodes(backend.actors)
    return outcome


@contextmanager
def _ray_head(pod: Pod, interrupts: Interrupts) -> Iterator[None]:
    """Ray's head processes, with this process as their driver. Raises TrainingFailed when they don't come up."""
    for left in reversed(range(STARTS)):
        child = start_ray(
            pod,
            "--head",
            f"--port={pod.gcs_port}",
            "--num-cpus=0",
            "--include-dashboard=false",
            "--no-monitor",  # of an autoscaler, which we have none of
            f"--temp-dir={pod.temporary}",
        )
        if _comes_up(pod, child, interrupts):
            break
        # Ray gives its own processes 30 s, which a busy machine may not keep.
        kill_descendants()
        if not left or interrupts.asked:
            raise TrainingFailed("Ray's head doesn't come up: see its output above; more CPU for the head may help")
        log.warning("Ray's head didn't come up, trying again")
    with cluster_session(f"{pod.ip}:{pod.gcs_port}"):
        yield


def _comes_up(pod: Pod, child: "subprocess.Popen[bytes]", interrupts: Interrupts) -> bool:
    deadline = time.monotonic() + RAY_START_SECONDS
    while child.poll() is None and not interrupts.asked and time.monotonic() < deadline:
        # The node manager opens its port once it is registered with the control store.
        if answers(pod.ip, pod.gcs_port) and answers(pod.ip, pod.ports["RLTRAIN_NODE_MANAGER_PORT"]):
            return True
        time.sleep(0.1)
    return False


def tell_nodes(actors: Sequence[Actor], join_s: float = 0.0) -> None:
    """Let every node of the cluster leave with exit code 0, and wait until they have.

    Args:
        actors: whose processes can pass the word on at once; other nodes must start one first.
        join_s: how long to wait for nodes that have yet to come.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    finish = cast(Any, ray.remote)(num_cpus=0, max_retries=0)(_flag_finished)
    words = [actor.control(_flag_finished) for actor in actors]
    begun = time.monotonic()
    told: dict[str, Any] = {}
    while (passed := time.monotonic() - begun) < LEAVE_SECONDS:
        there = _other_nodes()
        if not there and (told or words or passed >= join_s):
            return
        if passed >= (ACTOR_SECONDS if words else 0.0):
            for node in there - told.keys():
                strategy = NodeAffinitySchedulingStrategy(node, soft=False)
                told[node] = finish.options(scheduling_strategy=strategy).remote()
        time.sleep(0.1)
    log.warning("%d nodes haven't left", len(_other_nodes()))


def _other_nodes() -> set[str]:
    import ray

    nodes: list[dict[str, Any]] = cast(Any, ray.nodes)()
    return {node["NodeID"] for node in nodes if node["Alive"] and node["Labels"].get("role") != names.HEAD}


def _flag_finished(target: object = None) -> None:
    """On a node: what `rltrain node` there looks for."""
    Pod.from_environment().finished_flag.touch()


def _failed(error: RltrainError) -> RunResult:
    return OutcomeSoFar().failed(error)


def write_termination_log(path: Path, outcome: RunResult) -> None:
    """The outcome where Kubernetes keeps it for the operator, at most 3 KiB."""
    message = outcome.message
    report = {
        "state": outcome.state,
        "reason": outcome.reason,
        "stop_reason": outcome.stop_reason,
        "env_steps": outcome.env_steps,
        "episode_return_mean": outcome.episode_return_mean,
        "checkpoint": outcome.checkpoint,
        "message": None if message is None else message[:TERMINATION_BYTES],
    }
    text = json.dumps(finite(report))
    while message and len(text.encode()) > TERMINATION_BYTES:
        message = message[: len(message) * 3 // 4]
        text = json.dumps(finite({**report, "message": message}))
    try:
        path.write_text(text)
    except OSError as error:
        log.warning("%s can't be written: %s", path, error)

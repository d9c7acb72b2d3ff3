"""What a pod is told by its environment, and how it starts Ray."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rltrain.api import names
from rltrain.api.errors import TrainingFailed

_VARIABLES = {
    "RLTRAIN_GCS_PORT": names.GCS_PORT,
    "RLTRAIN_NODE_MANAGER_PORT": names.NODE_MANAGER_PORT,
    "RLTRAIN_OBJECT_MANAGER_PORT": names.OBJECT_MANAGER_PORT,
    "RLTRAIN_RUNTIME_ENV_AGENT_PORT": names.RUNTIME_ENV_AGENT_PORT,
    "RLTRAIN_METRICS_EXPORT_PORT": names.METRICS_EXPORT_PORT,
    "RLTRAIN_MIN_WORKER_PORT": names.MIN_WORKER_PORT,
    "RLTRAIN_MAX_WORKER_PORT": names.MAX_WORKER_PORT,
}


@dataclass(frozen=True)
class Pod:
    """A pod's place in its job. Ports and paths are overridable, to try pods as processes of one machine.

    Attributes:
        index: within its role, from 0, as the Job controller tells every pod; "any" where nobody does.
        head: DNS name of the head pod.
        ip: this pod's address.
        object_store_bytes: what Ray may use of /dev/shm.
        ports: by variable name.
    """

    job: str
    namespace: str
    uid: str
    role: str
    index: str
    name: str
    pod_uid: str
    ip: str
    head: str
    object_store_bytes: int
    ports: Mapping[str, int]
    manifest: Path
    data: Path
    finished_flag: Path
    termination_log: Path
    temporary: Path

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Pod":
        """Raises TrainingFailed naming a variable that is missing."""
        try:
            return cls(
                job=environment["RLTRAIN_JOB_NAME"],
                namespace=environment["RLTRAIN_JOB_NAMESPACE"],
                uid=environment["RLTRAIN_JOB_UID"],
                role=environment["RLTRAIN_ROLE"],
                index=environment.get("JOB_COMPLETION_INDEX", "any"),
                name=environment["RLTRAIN_POD_NAME"],
                pod_uid=environment["RLTRAIN_POD_UID"],
                ip=environment["RLTRAIN_POD_IP"],
                head=environment["RLTRAIN_HEAD"],
                object_store_bytes=int(environment["RLTRAIN_OBJECT_STORE_BYTES"]),
                ports={name: int(environment.get(name, default)) for name, default in _VARIABLES.items()},
                manifest=Path(environment.get("RLTRAIN_MANIFEST", names.MANIFEST_PATH)),
                data=Path(environment.get("RLTRAIN_DATA", names.DATA_PATH)),
                finished_flag=Path(environment.get("RLTRAIN_FINISHED_FLAG", names.FINISHED_FLAG)),
                termination_log=Path(environment.get("RLTRAIN_TERMINATION_LOG", names.TERMINATION_LOG)),
                temporary=Path(environment.get("RLTRAIN_RAY_FOLDER", "/tmp/ray")),
            )
        except (KeyError, ValueError) as error:
            raise TrainingFailed(
                f"this command runs in the pods of a job, whose environment the operator sets; here it is not: {error}"
            ) from error

    @property
    def node_manager_port(self) -> int:
        """Of this pod's own raylet."""
        return self.ports["RLTRAIN_NODE_MANAGER_PORT"]

    @property
    def gcs_port(self) -> int:
        """Of the head's control store."""
        return self.ports["RLTRAIN_GCS_PORT"]

    @property
    def run_directory(self) -> Path:
        """On the claim, keyed by the job's UID: a namesake starts fresh."""
        return self.data / self.uid


def ray_command(pod: Pod, *options: str) -> Sequence[str]:
    """`ray start` with what all pods of a job have in common."""
    ports = pod.ports
    return [
        sys.executable,
        "-m",
        "ray.scripts.scripts",
        "start",
        "--block",
        "--disable-usage-stats",
        "--include-log-monitor=false",
        f"--node-ip-address={pod.ip}",
        f"--labels=role={pod.role},index={pod.index}",
        f"--object-store-memory={pod.object_store_bytes}",
        f"--node-manager-port={ports['RLTRAIN_NODE_MANAGER_PORT']}",
        f"--object-manager-port={ports['RLTRAIN_OBJECT_MANAGER_PORT']}",
        f"--runtime-env-agent-port={ports['RLTRAIN_RUNTIME_ENV_AGENT_PORT']}",
        f"--metrics-export-port={ports['RLTRAIN_METRICS_EXPORT_PORT']}",
        f"--min-worker-port={ports['RLTRAIN_MIN_WORKER_PORT']}",
        f"--max-worker-port={ports['RLTRAIN_MAX_WORKER_PORT']}",
        *options,
    ]


def start_ray(pod: Pod, *options: str) -> "subprocess.Popen[bytes]":
    """`ray start --block` as a child in a process group of its own, so that it can be ended as a whole."""
    environment = {
        **os.environ,
        # A lost peer is noticed in seconds: its actors are made again elsewhere, or it comes back by itself.
        "RAY_health_check_initial_delay_ms": "5000",
        "RAY_health_check_period_ms": "2000",
        "RAY_health_check_timeout_ms": "5000",
        "RAY_health_check_failure_threshold": "3",
        "RAY_gcs_rpc_server_reconnect_timeout_s": "20",
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        "PYTHONUNBUFFERED": "1",
    }
    return subprocess.Popen(ray_command(pod, *options), env=environment, start_new_session=True)

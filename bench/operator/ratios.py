"""What is compared; the wanted ranges are in `bench/ranges.json`, by size."""

from collections.abc import Sequence
from typing import Final

from bench.rows import Ratio

DEFINITIONS: Final = "CRD"


def _beside(name: str, figure: str, *, faster: bool = False) -> Ratio:
    """Ours over KubeRay's; the other way round where less is faster."""
    ours, peers = f"ours:{figure}", f"kuberay:{figure}"
    return Ratio(name, peers, ours) if faster else Ratio(name, ours, peers)


_MAKING: Final = (
    _beside("x KubeRay's speed, all pods made", "made_s", faster=True),
    _beside("x KubeRay's speed, all pods running", "running_s", faster=True),
    _beside("operator's CPU x KubeRay's", "operator_cpu_s"),
    _beside("CPU of operator + controller-manager + API server x KubeRay's", "together_cpu_s"),
    _beside("memory x KubeRay's", "resident_mb"),
    Ratio("memory, MB", "ours:resident_mb"),
    Ratio("pods/s", "ours:pods_per_s"),
    Ratio("KubeRay's pods/s", "kuberay:pods_per_s"),
    _beside("writes a job x KubeRay's", "writes_a_job"),
    Ratio("writes a job", "ours:writes_a_job"),
    Ratio("requests at rest", "ours:steady_requests"),
    Ratio("KubeRay's requests at rest", "kuberay:steady_requests"),
    Ratio("writes beside progress", "ours:progress_writes"),
    Ratio("requests beside progress", "ours:progress_requests"),
    Ratio("share of a core beside progress", "ours:progress_cpu"),
    _beside("restart until idle x KubeRay's", "restart_idle_s"),
    Ratio("writes of a restart", "ours:restart_writes"),
    _beside("lost head reported x KubeRay's", "noticed_s"),
    _beside("lost head made up for x KubeRay's", "healed_s"),
)
_SIZES: Final = (
    Ratio("bytes", "ours:RLTrainingJob"),
    Ratio("KubeRay's RayCluster", "ours:RayCluster"),
    Ratio("KubeRay's RayJob", "ours:RayJob"),
)


def ratios(row: str) -> Sequence[Ratio]:
    """Those of a row."""
    return _SIZES if row == DEFINITIONS else _MAKING

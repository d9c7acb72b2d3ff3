"""How the operator itself runs; flags first, then environment variables."""

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rltrain_operator.render import OperatorConfig

SHORTEST_LEASE: Final = 6
"""Seconds; a shorter Lease is lost whenever the API server takes a breath."""


@dataclass(frozen=True)
class Settings:
    """The operator's own settings.

    Attributes:
        config: what it adds to jobs.
        namespaces: namespaces watched; none means the whole cluster.
        workers: jobs looked at at the same time.
        requests_per_second: longest sustained rate of requests to the API server.
        resync_seconds: time between two comparisons of everything with what it should be.
        port: of /healthz, /readyz and /metrics.
        host: address that they listen on.
        log_format: "json" or "plain".
        log_level: a name of the logging module.
        identity: reported in events.
        lease: namespace and name of the Lease that the leader holds; None where no other process runs.
        lease_seconds: how long the Lease lasts without being renewed.
    """

    config: OperatorConfig
    namespaces: tuple[str, ...] = ()
    workers: int = 8
    requests_per_second: float = 200.0
    resync_seconds: float = 300.0
    port: int = 8080
    host: str = "0.0.0.0"
    log_format: str = "json"
    log_level: str = "INFO"
    identity: str = "rltrain-operator"
    lease: tuple[str, str] | None = None
    lease_seconds: int = 15


def parse(argv: Sequence[str], environ: Mapping[str, str] = os.environ) -> Settings:
    """Settings from the command line, each with an environment variable behind it."""
    parser = argparse.ArgumentParser(
        prog="rltrain-operator", description="Runs RLTrainingJobs on this cluster.", allow_abbrev=False
    )

    def add(flag: str, default: str, help_: str, type_: type[str] | type[int] | type[float] = str) -> None:
        variable = "RLTRAIN_" + flag.removeprefix("--").upper().replace("-", "_")
        text = f"{help_} (environment: {variable})"
        parser.add_argument(flag, default=environ.get(variable, default), type=type_, help=text)

    add("--trainer-image", "", "image of jobs that name none")
    add("--trainer-image-pull-policy", "", "its pull policy: Always, IfNotPresent or Never")
    add("--trainer-image-pull-secrets", "", "Secrets in the jobs' namespaces to pull it with, separated by commas")
    add("--job-egress", "", "what jobs may reach beside themselves, as a JSON list of egress rules; empty: everything")
    add("--namespaces", "", "namespaces to watch, separated by commas; empty: the whole cluster")
    add("--workers", "8", "jobs looked at at the same time", int)
    add("--requests-per-second", "200", "longest sustained rate of requests", float)
    add("--resync-seconds", "300", "time between two comparisons of everything", float)
    add("--host", "0.0.0.0", "address of the probes and of /metrics")
    add("--port", "8080", "port of the probes and of /metrics", int)
    add("--log-format", "json", "json or plain")
    add("--log-level", "INFO", "DEBUG, INFO, WARNING or ERROR")
    add("--leader-election", "false", "true: act only while holding a Lease, so that several may run")
    add("--lease-name", "rltrain-operator", "name of the Lease")
    add("--lease-namespace", environ.get("POD_NAMESPACE", ""), "its namespace; the pod's own by default")
    add("--lease-seconds", "15", "how long the Lease lasts without being renewed", int)
    found = parser.parse_args(argv)
    if not found.trainer_image:
        parser.error("--trainer-image or RLTRAIN_TRAINER_IMAGE is needed")
    if found.trainer_image_pull_policy not in ("", "Always", "IfNotPresent", "Never"):
        parser.error("--trainer-image-pull-policy must be Always, IfNotPresent or Never")
    if found.log_format not in ("json", "plain"):
        parser.error("--log-format must be json or plain")
    if found.leader_election not in ("true", "false"):
        parser.error("--leader-election must be true or false")
    if found.leader_election == "true" and not found.lease_namespace:
        parser.error("--leader-election needs --lease-namespace, or POD_NAMESPACE")
    if found.lease_seconds < SHORTEST_LEASE:
        parser.error(f"--lease-seconds must be at least {SHORTEST_LEASE}")
    try:
        egress = _rules(found.job_egress)
    except ValueError:
        parser.error("--job-egress must be a JSON list of egress rules, as in a NetworkPolicy")
    return Settings(
        config=OperatorConfig(
            found.trainer_image,
            found.trainer_image_pull_policy or None,
            _names(found.trainer_image_pull_secrets),
            egress,
        ),
        namespaces=_names(found.namespaces),
        workers=found.workers,
        requests_per_second=found.requests_per_second,
        resync_seconds=found.resync_seconds,
        port=found.port,
        host=found.host,
        log_format=found.log_format,
        log_level=found.log_level,
        identity=environ.get("POD_NAME") or "rltrain-operator",
        lease=(found.lease_namespace, found.lease_name) if found.leader_election == "true" else None,
        lease_seconds=found.lease_seconds,
    )


def _rules(text: str) -> tuple[dict[str, Any], ...] | None:
    rules = json.loads(text) if text else None
    if rules is not None and not (isinstance(rules, list) and all(isinstance(rule, dict) for rule in rules)):
        raise ValueError(text)
    return None if rules is None else tuple(rules)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())

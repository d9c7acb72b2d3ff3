"""Where everything is: names, folders and addresses of the test cluster."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = Path(__file__).resolve().parent / "parts"
CACHE = Path(os.environ.get("RLTRAIN_CACHE") or Path.home() / ".cache" / "rltrain")

STATE = ROOT / ".cluster"  # what tests and people look at; git-ignored
KUBECONFIG = STATE / "kubeconfig"
BIN = STATE / "bin"
IMAGES_JSON = STATE / "images.json"
AUDIT_LOG = STATE / "audit.log"
LOGS = STATE / "logs"

# Outside the checkout, so that a cluster of another checkout of this machine is found and can be removed.
RUNTIME = Path("/run/rltrain-testbed")

CLUSTER = "rltrain-testbed"

# The one node: a network namespace joined to the machine by a pair of virtual links, pods on a bridge inside.
NODE = "rltrain-node"
HOST_LINK = "rltrain0"
HOST_ADDRESS = "10.213.77.1"
NODE_ADDRESS = "10.213.77.2"
PREFIX_LENGTH = 30
POD_RANGE = "10.244.0.0/16"
SERVICE_RANGE = "10.96.0.0/16"
KUBERNETES_ADDRESS = "10.96.0.1"
DNS_ADDRESS = "10.96.0.10"
API_SERVER = f"https://{NODE_ADDRESS}:6443"
REGISTRY = f"{NODE_ADDRESS}:5000"
CGROUP = "rltrain-testbed"

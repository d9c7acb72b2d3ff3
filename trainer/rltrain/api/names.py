"""Names that the manifest, the operator and the trainer agree on."""

from typing import Final, Literal

GROUP: Final = "rltrain.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "RLTrainingJob"
PLURAL: Final = "rltrainingjobs"
SINGULAR: Final = "rltrainingjob"
SHORT_NAME: Final = "rltj"

LABEL_JOB: Final = f"{GROUP}/job"
LABEL_JOB_UID: Final = f"{GROUP}/job-uid"
LABEL_ROLE: Final = f"{GROUP}/role"
LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGED_BY: Final = "rltrain"

RoleName = Literal["head", "rollouts", "replay", "learners", "workers"]
HEAD: Final = "head"
ROLLOUTS: Final = "rollouts"
REPLAY: Final = "replay"
LEARNERS: Final = "learners"
WORKERS: Final = "workers"
ROLES: Final[tuple[RoleName, ...]] = (HEAD, ROLLOUTS, REPLAY, LEARNERS, WORKERS)
"""All roles, in the order in which they are made and shown."""

# A pod is called <job>-<role>-<index>-xxxxx and must fit a label's 63 characters: 8 for the longest role,
# 6 for an index, 3 hyphens and the Job controller's 5 random characters leave 41; one is kept spare.
MAX_JOB_NAME: Final = 40
# The headless Service carries the job's name, and a Service's name is a DNS-1035 label.
JOB_NAME_PATTERN: Final = "^[a-z]([-a-z0-9]*[a-z0-9])?$"

GCS_PORT: Final = 6379
NODE_MANAGER_PORT: Final = 6380
OBJECT_MANAGER_PORT: Final = 6381
RUNTIME_ENV_AGENT_PORT: Final = 6382
METRICS_EXPORT_PORT: Final = 6383
MIN_WORKER_PORT: Final = 10002
MAX_WORKER_PORT: Final = 10999

PLAN_REFERENCE: Final = r"^[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*$"
"""One's own plan: `package.module:function`."""

MANIFEST_PATH: Final = "/etc/rltrain/job.yaml"
DATA_PATH: Final = "/data"
CODE_PATH: Final = "/code"
FINISHED_FLAG: Final = "/tmp/rltrain-finished"
TERMINATION_LOG: Final = "/dev/termination-log"
DEBUG: Final = "RLTRAIN_DEBUG"
"""An environment variable: 1 shows tracebacks, and compares DD-PPO's ranks after each iteration."""

EXIT_DONE: Final = 0
EXIT_FAILED: Final = 1
EXIT_INVALID: Final = 2
EXIT_UNREACHABLE: Final = 3
EXIT_DEADLINE: Final = 124
EXIT_INTERRUPTED: Final = 130
EXIT_TERMINATED: Final = 143

DRIVER_FIELD_MANAGER: Final = "rltrain-driver"
OPERATOR_FIELD_MANAGER: Final = "rltrain-operator"

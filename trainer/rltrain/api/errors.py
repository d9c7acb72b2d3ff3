"""What can go wrong, as a tree whose leaves each have an exit code and a CamelCase reason.

RltrainError
├── InvalidInput (2): InvalidManifest, UnknownEnvironment, UnsupportedSpace, CheckpointMismatch, RunDirectoryUnusable
├── ApiUnreachable (3)
├── DeadlineExceeded (124)
├── Interrupted (130)
├── Terminated (143)
└── TrainingFailed (1): EnvironmentFailed (TooManyRestarts), CheckpointUnusable, StorageFull, Superseded, MissingExtra
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rltrain.api import names


class RltrainError(Exception):
    """A failure with a sentence for the user: what happened and what to do."""

    exit_code: ClassVar[int] = names.EXIT_FAILED

    @property
    def reason(self) -> str:
        """CamelCase reason, as conditions and the termination log carry it."""
        return type(self).__name__


class InvalidInput(RltrainError):
    """What the user gave can't be used as it is; trying again won't help."""

    exit_code = names.EXIT_INVALID


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a manifest.

    Attributes:
        path: dotted path of the field, e.g. ``spec.config.lr``; empty for the file as a whole.
        message: what was given and what is allowed.
        hint: the nearest right name, the section a key belongs in, or the line to write instead.
        line, column: 1-based place in the file, where it is known.
    """

    path: str
    message: str
    hint: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = f"{self.line}:{self.column}: " if self.line is not None else ""
        hint = f" ({self.hint})" if self.hint else ""
        path = f"{self.path}: " if self.path else ""
        return f"{place}{path}{self.message}{hint}"


class InvalidManifest(InvalidInput):
    """All problems of a manifest at once."""

    def __init__(self, problems: Sequence[Problem], source: str = "manifest") -> None:
        self.problems = tuple(problems)
        self.source = source
        lines = [f"{source}:{p}" if p.line is not None else f"{source}: {p}" for p in self.problems]
        super().__init__("\n".join(lines))


class UnknownEnvironment(InvalidInput):
    """No environment of that id, module or class."""


class UnsupportedSpace(InvalidInput):
    """The plan's policy can't handle an observation or action space."""


class CheckpointMismatch(InvalidInput):
    """A whole checkpoint, but of another plan, environment or space."""


class RunDirectoryUnusable(InvalidInput):
    """The run directory holds something else, is in use, or can't be written."""


class ApiUnreachable(RltrainError):
    """The Kubernetes API didn't answer, or refused the credentials."""

    exit_code = names.EXIT_UNREACHABLE


class DeadlineExceeded(RltrainError):
    """``runPolicy.activeDeadlineSeconds`` ran out before a stop criterion was reached."""

    exit_code = names.EXIT_DEADLINE


class Interrupted(RltrainError):
    """Ctrl-C; a checkpoint was saved."""

    exit_code = names.EXIT_INTERRUPTED


class Terminated(RltrainError):
    """SIGTERM; a checkpoint was saved."""

    exit_code = names.EXIT_TERMINATED


class TrainingFailed(RltrainError):
    """Training can't go on."""


class EnvironmentFailed(TrainingFailed):
    """An environment raised or returned what it must not (NaN, a wrong shape).

    Args:
        kind: what has failed, in a word, for failures to be told apart.
    """

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind


class TooManyRestarts(EnvironmentFailed):
    """A worker's environments failed more often than `env.maxRestarts` allows; another worker's would too."""

    @property
    def reason(self) -> str:
        return EnvironmentFailed.__name__


class CallbackFailed(TrainingFailed):
    """A user's callback raised, or gave what can't be reported."""


class CheckpointUnusable(TrainingFailed):
    """No whole checkpoint where one was asked for."""


class StorageFull(TrainingFailed):
    """The run directory's file system has no room left."""


class Superseded(TrainingFailed):
    """A newer attempt of the same job owns the run directory."""


class MissingExtra(TrainingFailed):
    """An optional part of the distribution isn't installed."""

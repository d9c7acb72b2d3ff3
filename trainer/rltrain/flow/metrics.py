"""Counters, timers and information that the operators of one running flow share."""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rltrain.flow.actors import Actor

STEPS_SAMPLED: Final = "num_env_steps_sampled"
STEPS_TRAINED: Final = "num_env_steps_trained"
STEPS_TRAINED_THIS_ITER: Final = "num_env_steps_trained_this_iter"
EPISODES: Final = "num_episodes"
REPORTS: Final = "num_reports"
BATCHES_LOST: Final = "num_batches_lost"
FRAGMENTS_LOST: Final = "num_fragments_lost"
ENV_RESTARTS: Final = "num_env_restarts"
EPISODES_DROPPED: Final = "num_episodes_dropped"

TIMER_WINDOW: Final = 100
_ONE_AGENT: Final[Mapping[str, float]] = {}


class Timer:
    """Mean of the last 100 durations, and the throughput of what they handled.

    Attributes:
        total: seconds of all durations since the driver's start.
    """

    def __init__(self, clock: Callable[[], float], real_time: bool = True) -> None:
        self.total = 0.0
        self._clock = clock
        self._real_time = real_time
        self._seconds: deque[float] = deque(maxlen=TIMER_WINDOW)
        self._units: deque[int] = deque(maxlen=TIMER_WINDOW)

    def __call__(self) -> "Stopwatch":
        """Times what is done within it, unless that raises."""
        return Stopwatch(self, self._clock)

    def push(self, seconds: float) -> None:
        """Add one duration."""
        self._seconds.append(seconds)
        self.total += seconds

    def push_measured(self, seconds: float) -> None:
        """Add one duration that an actor has measured in real time; by a clock of steps none has passed."""
        self.push(seconds if self._real_time else 0.0)

    def push_units(self, count: int) -> None:
        """Add how many units the last duration handled."""
        self._units.append(count)

    @property
    def mean_ms(self) -> float:
        """Mean duration in milliseconds; 0 before the first."""
        return 1000.0 * sum(self._seconds) / len(self._seconds) if self._seconds else 0.0

    @property
    def throughput(self) -> float | None:
        """Units a second; None where nothing was counted or no time passed."""
        total = sum(self._seconds)
        return sum(self._units) / total if self._units and total > 0 else None


class Stopwatch:
    """Adds to a timer how long a `with` block took; a tenth of what `contextmanager` costs, with every item."""

    __slots__ = ("_clock", "_start", "_timer")

    def __init__(self, timer: Timer, clock: Callable[[], float]) -> None:
        self._timer, self._clock = timer, clock

    def __enter__(self) -> None:
        self._start = self._clock()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._timer.push(self._clock() - self._start)


@dataclass
class MetricsContext:
    """State that flows along a plan beside its items.

    Attributes:
        clock: seconds of training over all attempts; in serial mode it counts steps, so that every run is the same.
        real_time: whether the clock shows real time rather than steps.
        counters: running totals; whatever an operator must remember over a restart lives here.
        marks: times of the clock to remember, by name.
        timers: by name, in seconds here and in milliseconds in reports.
        info: latest information of learners and others, by name.
        episode_returns, episode_lengths: of the window's finished episodes.
        policy_returns: where there are several agents, each policy's, of the last episodes that it had a part in.
        custom: the user's own metrics of those of them that have them, by name.
        current_actor: where the item being handled came from.
    """

    clock: Callable[[], float] = time.monotonic
    real_time: bool = True
    window: int = 100
    counters: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    marks: dict[str, float] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    current_actor: "Actor | None" = None

    def __post_init__(self) -> None:
        self.timers: dict[str, Timer] = {}
        self.episode_returns: deque[float] = deque(maxlen=self.window)
        self.episode_lengths: deque[int] = deque(maxlen=self.window)
        self.policy_returns: dict[str, deque[float]] = {}
        self.custom: dict[str, deque[float]] = {}

    def timer(self, name: str) -> Timer:
        """The timer of that name, made on first use."""
        timer = self.timers.get(name)
        if timer is None:
            timer = self.timers[name] = Timer(self.clock, self.real_time)
        return timer

    def add_episode(
        self, return_: float, length: int, by_policy: Mapping[str, float] = _ONE_AGENT, in_window: bool = True
    ) -> None:
        """Count a finished episode, and put it into the window of those that means are taken of."""
        self.counters[EPISODES] += 1
        if not in_window:
            return
        self.episode_returns.append(return_)
        self.episode_lengths.append(length)
        for policy, its in by_policy.items():
            self.policy_returns.setdefault(policy, deque(maxlen=self.window)).append(its)

    def add_custom(self, values: Mapping[str, float]) -> None:
        """Put an episode's custom metrics into windows of their own."""
        for name, value in values.items():
            self.custom.setdefault(name, deque(maxlen=self.window)).append(value)

    @property
    def custom_metrics(self) -> dict[str, float]:
        """Mean, minimum and maximum of each custom metric over its window."""
        found: dict[str, float] = {}
        for name, values in self.custom.items():
            found |= {f"{name}_mean": sum(values) / len(values), f"{name}_min": min(values), f"{name}_max": max(values)}
        return found

    @property
    def episode_return_mean(self) -> float | None:
        """Mean return of the window; None before any episode has finished."""
        returns = self.episode_returns
        return sum(returns) / len(returns) if returns else None

    @property
    def steps(self) -> int:
        """How far training is: sampled steps, or trained ones where nothing is sampled."""
        return self.counters[STEPS_SAMPLED] or self.counters[STEPS_TRAINED]

    def get_state(self) -> dict[str, Any]:
        """What a resumed run needs: counters, marks and the episode window."""
        return {
            "counters": dict(self.counters),
            "marks": dict(self.marks),
            "episode_returns": list(self.episode_returns),
            "episode_lengths": list(self.episode_lengths),
            "policy_returns": {policy: list(returns) for policy, returns in self.policy_returns.items()},
            "custom": {name: list(values) for name, values in self.custom.items()},
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up where `get_state` left off."""
        self.counters.clear()
        self.counters.update(state["counters"])
        self.marks = dict(state["marks"])
        self.episode_returns = deque(state["episode_returns"], maxlen=self.window)
        self.episode_lengths = deque(state["episode_lengths"], maxlen=self.window)
        self.policy_returns = {
            policy: deque(returns, maxlen=self.window) for policy, returns in state["policy_returns"].items()
        }
        self.custom = {name: deque(values, maxlen=self.window) for name, values in state.get("custom", {}).items()}

    @contextmanager
    def active(self) -> Iterator["MetricsContext"]:
        """Make this the context that `get_metrics` returns."""
        token = _ACTIVE.set(self)
        try:
            yield self
        finally:
            _ACTIVE.reset(token)


_ACTIVE: ContextVar[MetricsContext] = ContextVar("rltrain_metrics")


def get_metrics() -> MetricsContext:
    """The context of the flow that is being pulled. Raises LookupError outside of one."""
    return _ACTIVE.get()

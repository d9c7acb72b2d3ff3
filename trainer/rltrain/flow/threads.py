"""An actor in a thread of the driver's process."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from rltrain.flow.actors import ActorFailed, ActorHost, ActorLost, Future, ShardFailure

END_SECONDS: Final = 10.0
"""How long a thread that is to end has to finish its call."""


class Changes:
    """Told of whatever is done anywhere, so that one thread can wait for many things of several kinds."""

    def __init__(self) -> None:
        self._condition = threading.Condition()

    def tell(self, done: Callable[[], object]) -> None:
        """Do something that others may wait for."""
        with self._condition:
            done()
            self._condition.notify_all()

    def wait(self, condition: Callable[[], bool], timeout: float | None) -> None:
        """Until `condition` holds, at most `timeout` seconds."""
        with self._condition:
            self._condition.wait_for(condition, timeout)


class ThreadFuture:
    """A result that a thread owes."""

    def __init__(self, actor: "ThreadActor", function: Callable[..., Any], args: Sequence[Any]) -> None:
        self.actor = actor
        self.function = function
        self.args = args
        self.done = False
        self.value: Any = None
        self.error: Exception | None = None

    def finish(self, value: Any = None, error: Exception | None = None) -> None:
        self.value, self.error, self.done = value, error, True
        self.args = ()

    def result(self) -> Any:
        """What came of it, once it is done. Raises ActorFailed, ActorLost, ValueLost."""
        if isinstance(self.error, ShardFailure):
            raise self.error
        if self.error is not None:
            raise ActorFailed(self.actor, f"actor {self.actor.index} failed: {self.error}") from self.error
        return self.value


class ThreadActor:
    """An object whose calls run one after the other in a thread of its own.

    Args:
        factory: makes the object, here and now.
        resolve: from an argument to the value that it stands for; raises ValueLost.
        changes: told when a call is done.
    """

    def __init__(
        self,
        factory: Callable[[], Any],
        index: int,
        resolve: Callable[["ThreadActor", Any], Any],
        changes: Changes,
    ) -> None:
        self.index = index
        self._host = ActorHost(factory)
        self._resolve = resolve
        self._changes = changes
        self._calls: deque[ThreadFuture] = deque()
        self._wake = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._work, name=f"actor-{index}", daemon=True)
        self._thread.start()

    def apply(self, function: Callable[..., Any], *args: Any) -> Future:
        future = ThreadFuture(self, function, args)
        with self._wake:
            if self._ended:
                future.finish(error=self._gone())
            else:
                self._calls.append(future)
                self._wake.notify()
        return future

    def apply_split(self, function: Callable[..., Any], *args: Any) -> Future:
        return self.apply(function, *args)  # in one process a value is its own reference

    def control(self, function: Callable[..., Any], *args: Any) -> Future:
        """Runs in the caller's thread."""
        future = ThreadFuture(self, function, args)
        self._run(future)
        return future

    def end(self) -> None:
        """No more calls; waits for one that is running, but not long."""
        with self._wake:
            self._ended = True
            left = list(self._calls)
            self._calls.clear()
            self._wake.notify()
        for future in left:
            self._changes.tell(lambda future=future: future.finish(error=self._gone()))  # type: ignore[misc]
        self._thread.join(END_SECONDS)

    def _work(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._ended or self._calls)
                if self._ended:
                    return
                future = self._calls.popleft()
            self._run(future)

    def _run(self, future: ThreadFuture) -> None:
        value: Any = None
        failure: Exception | None = None
        try:
            value = self._host.start(future.function, [self._resolve(self, arg) for arg in future.args])
        except Exception as error:
            failure = error
        self._changes.tell(lambda: future.finish(value, failure))

    def _gone(self) -> ActorLost:
        return ActorLost(self, f"actor {self.index} has been ended")

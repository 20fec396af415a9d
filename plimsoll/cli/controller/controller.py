"""The controller: waits for the Environment, takes the Lease, runs the loop; again where the Environment changes."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import structlog

from plimsoll.apply import LeaseHeldError, LeaseLostError, WriterStoppingError, cluster_identity
from plimsoll.cli.controller.retries import retry_transient
from plimsoll.cli.controller.service import Service
from plimsoll.cli.controller.status import ControllerState
from plimsoll.cli.controller.stopping import Stopping
from plimsoll.cli.writing import Writer, WriterOptions, writer_of
from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection
from plimsoll.loop import EnvironmentChangedError, Loop, RoundResult, require_served
from plimsoll.model.api import Environment
from plimsoll.observe.cluster import Observer

_WAIT_SECONDS: Final = 30.0

T = TypeVar("T")

log = structlog.get_logger(__name__)


class Controller:
    """Of one cluster, whose watches are synced."""

    def __init__(
        self,
        options: WriterOptions,
        connection: Connection,
        observer: Observer,
        service: Service,
        stopping: Stopping,
    ) -> None:
        self._options = options
        self._connection = connection
        self._observer = observer
        self._service = service
        self._stopping = stopping
        service.watches(observer)
        service.status.become(ControllerState.STARTING)

    def run(self) -> None:
        """Runs until a signal arrives. Raises errors that no later round can fix, such as invalid settings."""
        identity = self._retried(lambda: cluster_identity(self._connection))
        self._service.metrics.of(cluster=identity.uid)
        while not self._stopping.requested:
            environment = self.environment(None)
            try:
                with self.session(environment, None) as loop:
                    loop.run(
                        self._service.completed, on_begin=self._service.status.beat, on_failure=self._service.failed
                    )
            except EnvironmentChangedError as error:
                log.warning("the Environment was deleted or replaced: starting again", error=error.message)
            except LeaseLostError as error:
                log.error("the Lease is lost: waiting for it", error=error.message)
            except WriterStoppingError:
                break
            except PlimsollError:
                if not self._stopping.requested:
                    raise
            finally:
                self._service.lost_lease()

    def run_once(self, timeout: float, on_round: Callable[[RoundResult], bool], resync_seconds: float) -> None:
        """Runs for a job until `on_round` returns False. Raises the first error."""
        began = time.monotonic()
        environment = self.environment(timeout)
        with self.session(environment, max(0.0, timeout - (time.monotonic() - began))) as loop:
            loop.run(
                lambda result: self._service.completed(result) and on_round(result),
                retry=False,
                resync_seconds=resync_seconds,
                on_begin=self._service.status.beat,
            )

    def environment(self, wait_seconds: float | None) -> Environment:
        """The cluster's Environment, once there is one. `wait_seconds`: None waits without limit.

        Raises PlimsollError where there is none in time, or it is not the one of the options.
        """
        deadline = None if wait_seconds is None else time.monotonic() + wait_seconds
        warned = False
        while not (found := self._observer.snapshot().environment).uid:
            if deadline is not None and time.monotonic() >= deadline:
                raise PlimsollError(
                    f"the cluster at {self._connection.server} has no Environment",
                    "apply the environment's stack first",
                )
            if not warned:
                log.info("waiting for the Environment", cluster=self._connection.server)
                warned = True
            self._service.status.become(ControllerState.NO_ENVIRONMENT)
            self._observer.wait(0.0, 1.0, _until(deadline))
        if self._options.environment not in (None, found.name):
            raise PlimsollError(
                f"the Environment of the cluster at {self._connection.server} is {found.name!r}, not "
                f"{self._options.environment!r}",
                "connect to the other cluster with --context, or remove --environment",
            )
        return found

    @contextmanager
    def session(self, environment: Environment, wait_seconds: float | None) -> Iterator[Loop]:
        """The loop of one Environment, which holds the Lease; stopped on leaving."""
        stop = self._service.status.stop
        # A signal while the writer ends must not keep it from that.
        with (
            self._stopping.by(stop),
            writer_of(self._options, self._connection, self._observer, environment) as writer,
        ):
            loop = Loop(writer.observer, writer.applier, writer.reporter, environment=environment)
            with self._stopping.by(stop, loop.stop, writer.applier.interrupt):
                if wait_seconds is None:
                    self._retried(lambda: self._take_lease(writer, environment, None))
                else:
                    self._take_lease(writer, environment, wait_seconds)
                yield loop

    def _retried(self, call: Callable[[], T]) -> T:
        return retry_transient(call, self._stopping, self._service.waits)

    def _take_lease(self, writer: Writer, environment: Environment, wait_seconds: float | None) -> None:
        """Logs if another process has it. Raises EnvironmentChangedError where the Environment changes meanwhile: a
        standby of an older one would have to start again once it has the Lease."""
        status, applier = self._service.status, writer.applier

        def go_on() -> None:
            status.beat()
            require_served(environment, self._observer)

        status.become(ControllerState.STARTING, writer.environment)
        try:
            applier.start()
        except LeaseHeldError as error:
            log.warning("waiting for the Lease", environment=writer.environment, holder=error.holder)
            status.become(ControllerState.STANDBY, writer.environment, error.holder)
            applier.start(wait_seconds, go_on)
        status.become(ControllerState.ACTIVE, writer.environment, applier.identity)
        self._service.has_lease(writer.environment)
        log.info("the controller is active", environment=writer.environment, identity=applier.identity)


def _until(deadline: float | None) -> float:
    return _WAIT_SECONDS if deadline is None else min(_WAIT_SECONDS, max(0.0, deadline - time.monotonic()))

"""One writer per cluster, by a Lease (coordination.k8s.io/v1), with the protocol of client-go's leader election.

The Kubernetes client's own `leaderelection` is not used: it ends with an exception when the apiserver cannot be
reached, cannot be stopped or release its Lease, and reads the wall clock.
"""

import math
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from plimsoll.apply.errors import LeaseHeldError, LeaseLostError, NamespaceMissingError, WriterStoppingError
from plimsoll.apply.settings import LeaseSettings
from plimsoll.distribution import version
from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection, ConnectionFailedError, RequestError

LEASE_VERSION: Final = "plimsoll.dev/version"
"""Annotation: the release of the holder."""
LAST_DELTA: Final = "plimsoll.dev/last-delta"
"""Annotation: when the holder, or one before it, last changed an object; RFC 3339."""
EXPIRED_HOLDERS: Final = "plimsoll.dev/expired-holders"
"""Annotation: identities, separated by commas, whose Lease expired, and whose locks and pending operations are not
cleared yet."""
POD_UID: Final = "authentication.kubernetes.io/pod-uid"
"""Of the extra attributes of a user whose token is bound to a pod."""
_MOST_HOLDERS: Final = 16
"""Maximum number of identities in EXPIRED_HOLDERS: the oldest are dropped, so that the annotation stays short."""

_POLL_SECONDS: Final = 0.5
"""Maximum seconds between the reads of a Lease that another process holds. A renewal is observed this much later at
most, and the Lease expires its duration after that."""
_SHORTEST_SECONDS: Final = 0.2
"""Minimum seconds between two renewals that failed, and for the answer to the last one before the renew deadline."""

log = structlog.get_logger(__name__)


def new_identity() -> str:
    """`hostname_pid_random`: a hostname has no underscore."""
    return f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}"


def boot_clock() -> float:
    """Seconds since the start of the host, those of its suspension among them, which a monotonic clock may leave out:
    another writer takes the Lease meanwhile."""
    boot: int | None = getattr(time, "CLOCK_BOOTTIME", None)  # Linux has it
    return time.monotonic() if boot is None else time.clock_gettime(boot)


@dataclass(frozen=True)
class _Observation:
    """A Lease's record and when it expires: its duration after it was first observed, on this process's clock."""

    holder: str
    renewed: str
    expires: float
    alive: bool
    """Whether the record changed while it was observed."""


class Lease:
    """The Lease of one cluster. `on_lost` is called once, on the renewing thread, when it is lost."""

    def __init__(
        self,
        connection: Connection,
        settings: LeaseSettings,
        on_lost: Callable[[LeaseLostError], None],
        *,
        identity: str | None = None,
        clock: Callable[[], float] = boot_clock,
    ) -> None:
        self.name = settings.name
        self.identity = identity or new_identity()
        self._connection = connection
        self._settings = settings
        self._on_lost = on_lost
        self._clock = clock
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{settings.namespace}/leases"
        self._lease: dict[str, Any] = {}
        self._notes = {LEASE_VERSION: version()}
        self._observed: _Observation | None = None
        self._renewed_at = 0.0
        self._holding = False
        # Not an Event: a signal handler that sets one may run in a thread that holds the Event's lock.
        self._given_up = False
        self._released = threading.Event()
        self._thread: threading.Thread | None = None
        self._writing = threading.Lock()

    def identify(self) -> None:
        """Adds the UID of the pod to `identity`, `hostname_pid_random.uid`, where the apiserver knows the process by a
        token that is bound to a pod. By it the admission policy of the foundation recognizes the holder's writes.

        Raises ConnectionFailedError, or RequestError other than that the apiserver has no such question.
        """
        try:
            review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
            answer = self._connection.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
        except RequestError as error:
            if error.code in (403, 404):  # not known to be a pod
                return
            raise
        extra = ((answer.get("status") or {}).get("userInfo") or {}).get("extra") or {}
        uids = extra.get(POD_UID) or ()
        if uids and not self.identity.endswith(f".{uids[0]}"):
            self.identity = f"{self.identity}.{uids[0]}"

    @property
    def held(self) -> bool:
        """Whether this process certainly holds the Lease. Also False after a long suspension of this process."""
        return self._holding and self._clock() - self._renewed_at < self._settings.renew_deadline

    @property
    def usable(self) -> bool:
        """Whether new operations may be started."""
        return self.held and not self._given_up

    def require(self) -> None:
        """Raises WriterStoppingError or LeaseLostError if no new operations may be started."""
        if self._given_up:
            raise WriterStoppingError
        if not self.held:
            raise LeaseLostError(
                f"the Lease {self._settings.namespace}/{self.name} is not held",
                "nothing is applied until this process holds it again",
            )

    def give_up(self) -> None:
        """Prevents new operations and ends waiting; `release` then releases the Lease. Takes no lock."""
        self._given_up = True

    @property
    def expired_holders(self) -> tuple[str, ...]:
        """Identities of writers that ended and may have left locks or pending operations, which are not cleared yet."""
        annotations = (self._lease.get("metadata") or {}).get("annotations") or {}
        return tuple(filter(None, str(annotations.get(EXPIRED_HOLDERS, "")).split(",")))

    def acquire(self, wait: float | None = 0.0, go_on: Callable[[], None] = lambda: None) -> None:
        """Takes the Lease and renews it until `release`. `wait` in seconds; None: without limit. If the holder does not
        renew the Lease, this waits until it expires, whatever `wait` is: only then the holder is known to have ended.
        `go_on` is called while waiting, and may raise to end it. Raises LeaseHeldError naming the holder,
        WriterStoppingError where it is given up, or PlimsollError where the cluster refuses."""
        began = self._clock()
        self._released.clear()
        self._observed = None
        announced = False
        if self._given_up:
            self.require()
        while not self._try_acquire():
            observed = self._observed
            holder = observed.holder if observed else "another writer"
            if observed is not None and observed.alive and wait is not None and self._clock() - began >= wait:
                raise LeaseHeldError(
                    f"the Lease {self._settings.namespace}/{self.name} is held by {holder}",
                    "only one controller may write: stop the other one, or wait until it ends",
                    holder=holder,
                )
            if not announced:
                log.info("waiting for the Lease", lease=self.name, holder=holder)
                announced = True
            go_on()
            if self._given_up:
                self.require()
            time.sleep(self._wait())
        self._holding = True
        log.info("acquired the Lease", lease=self.name, identity=self.identity)
        self._thread = threading.Thread(target=self._renew_until_released, name=f"lease-{self.name}", daemon=True)
        self._thread.start()

    def applied(self) -> None:
        """Records that a Plan was applied; the next renewal writes the time."""
        self._notes = {**self._notes, LAST_DELTA: _micro_time()}

    def forget_expired_holders(self) -> None:
        """To be called when what they left behind has been cleared."""
        if self.expired_holders:
            with self._writing:
                self._write(holder=self.identity, expired=())

    def release(self, unlocked: bool = True) -> None:
        """Releases the Lease, or stops waiting for it. Never raises: if the cluster is unreachable, the Lease
        expires. If not all stacks are certainly `unlocked`, this writer is recorded as an expired holder."""
        self._released.set()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        if not self._holding:
            return
        self._holding = False
        try:
            with self._writing:
                left = () if unlocked else (self.identity,)
                self._write(holder="", expired=(*self.expired_holders, *left)[-_MOST_HOLDERS:])
            log.info("released the Lease", lease=self.name)
        except PlimsollError as error:
            log.warning("the Lease could not be released and will expire", lease=self.name, error=error.message)

    def _wait(self) -> float:
        """Seconds until the next attempt: at most until the observed record expires."""
        wait = min(_POLL_SECONDS, self._settings.retry_period)
        left = self._observed.expires - self._clock() if self._observed else 0.0
        return min(wait, left) if left > 0 else wait

    def _try_acquire(self) -> bool:
        try:
            lease = self._connection.request("GET", f"{self._path}/{self.name}")
        except RequestError as error:
            if error.code != 404:
                raise
            return self._create()
        self._lease = lease
        spec = lease.get("spec") or {}
        holder, renewed = str(spec.get("holderIdentity") or ""), str(spec.get("renewTime") or "")
        now = self._clock()
        seen = self._observed
        if seen is None or (seen.holder, seen.renewed) != (holder, renewed):
            duration = float(spec.get("leaseDurationSeconds") or self._settings.duration)
            seen = _Observation(holder, renewed, now + duration, alive=seen is not None)
        self._observed = seen
        if holder and holder != self.identity and now < seen.expires:
            return False
        expired = self.expired_holders
        if holder and holder != self.identity:
            log.info("the holder of the Lease does not renew it: taking it over", lease=self.name, holder=holder)
            expired = (*(each for each in expired if each != holder), holder)[-_MOST_HOLDERS:]
        try:
            with self._writing:
                self._write(holder=self.identity, expired=expired, taken=True)
        except RequestError as error:
            if error.code == 409:
                return False
            raise
        return True

    def _create(self) -> bool:
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.name, "namespace": self._settings.namespace, "annotations": {**self._notes}},
            "spec": {"acquireTime": _micro_time(), "leaseTransitions": 0, **self._record(self.identity)},
        }
        started = self._clock()
        try:
            self._lease = self._connection.request("POST", self._path, body)
        except RequestError as error:
            if error.reason == "AlreadyExists":
                return False
            if error.code == 404:
                raise NamespaceMissingError(
                    f"the Lease {self.name} cannot be created: there is no namespace {self._settings.namespace}",
                    "deploy the foundation stack first",
                ) from None
            raise
        self._renewed_at = started
        return True

    def _write(self, *, holder: str, expired: tuple[str, ...], taken: bool = False) -> None:
        """Replaces the Lease that was read last. Raises RequestError of code 409 where it has changed since."""
        started = self._clock()
        spec = dict(self._lease.get("spec") or {}) | self._record(holder)
        if taken:
            spec["acquireTime"] = _micro_time()
            spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1
        metadata = dict(self._lease["metadata"])
        annotations = {
            key: value for key, value in (metadata.get("annotations") or {}).items() if key != EXPIRED_HOLDERS
        }
        annotations |= self._notes
        if expired:
            annotations[EXPIRED_HOLDERS] = ",".join(expired)
        metadata["annotations"] = annotations
        metadata.pop("managedFields", None)
        body = {**self._lease, "metadata": metadata, "spec": spec}
        self._lease = self._connection.request("PUT", f"{self._path}/{self.name}", body, timeout=self._timeout())
        if holder:
            self._renewed_at = started

    def _timeout(self) -> float:
        """Seconds for one request. While the Lease is held, at most those to the renew deadline: what is running is
        interrupted only when the request has ended, and another writer may take the Lease soon after."""
        timeout = max(1.0, self._settings.renew_deadline - self._settings.retry_period)
        return min(timeout, max(_SHORTEST_SECONDS, self._left())) if self._holding else timeout

    def _left(self) -> float:
        """Seconds to the renew deadline."""
        return self._renewed_at + self._settings.renew_deadline - self._clock()

    def _record(self, holder: str) -> dict[str, Any]:
        # Whole seconds, and not fewer than this holder counts on. Like client-go, a released Lease lasts a second.
        duration = max(1, math.ceil(self._settings.duration)) if holder else 1
        return {"holderIdentity": holder, "leaseDurationSeconds": duration, "renewTime": _micro_time()}

    def _renew_until_released(self) -> None:
        while not self._released.wait(self._pause()):
            # After a suspension of this process, or of its host, before any request: another writer may be at work.
            reason = self._renew() if self.held else f"it was not renewed for {self._settings.renew_deadline:g} s"
            if reason is not None:
                self._holding = False
                log.error("lost the Lease", lease=self.name, reason=reason)
                self._on_lost(
                    LeaseLostError(
                        f"the Lease {self._settings.namespace}/{self.name} was lost: {reason}",
                        "nothing more is applied until this process holds it again",
                    )
                )
                return

    def _pause(self) -> float:
        """Seconds to the next try: sooner after a failed one, as the deadline nears."""
        return max(_SHORTEST_SECONDS, min(self._settings.retry_period, self._left() / 2))

    def _renew(self) -> str | None:
        """Renews the Lease. Returns None, or why the Lease is lost."""
        try:
            with self._writing:
                self._write(holder=self.identity, expired=self.expired_holders)
            return None
        except RequestError as error:
            if error.code == 404:
                return "it was deleted"
            if error.code == 409:
                return self._taken_over()
            failure: PlimsollError = error
        except ConnectionFailedError as error:
            failure = error
        except Exception as error:  # without this thread, nobody would notice that the Lease is lost
            log.exception("unexpected error while the Lease is renewed", lease=self.name)
            failure = PlimsollError(type(error).__name__)
        log.warning("the Lease could not be renewed", lease=self.name, error=failure.message)
        return None if self.held else f"it could not be renewed: {failure.message}"

    def _taken_over(self) -> str | None:
        """After a conflict: the new holder; None if this process still holds the Lease and only its metadata
        changed."""
        try:
            self._lease = self._connection.request("GET", f"{self._path}/{self.name}", timeout=self._timeout())
        except (RequestError, ConnectionFailedError) as error:
            return None if self.held else f"it could not be renewed: {error.message}"
        holder = str((self._lease.get("spec") or {}).get("holderIdentity") or "")
        if holder == self.identity:
            return None
        return f"{holder or 'no other process'} holds it now"


def _micro_time() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

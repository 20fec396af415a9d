"""Errors of applying a Plan. Only this module interprets the engine's output."""

import errno
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from plimsoll.errors import PlimsollError


class ApplyError(PlimsollError):
    """A Plan was not applied, or only a part of it."""


class EngineMissingError(ApplyError):
    """The pulumi CLI is missing or too old."""


class ProviderMissingError(ApplyError):
    """The kubernetes plugin is missing and cannot be downloaded."""


class PassphraseError(ApplyError):
    """The passphrase file cannot be read, or its content does not decrypt the stack."""


class BackendUnreachableError(ApplyError):
    """The state backend does not answer, or refuses."""


class StateFolderFullError(ApplyError):
    """A file of the state or of the work folder cannot be written, for example because the disk is full."""


class StateUnreadableError(ApplyError):
    """The stack's checkpoint cannot be read: it is damaged, or of a newer release."""


class StateDamagedError(StateUnreadableError):
    """The stack's checkpoint is not one, for example because it was truncated. A backup may take its place."""


class StateChangedError(ApplyError):
    """Another process changed the stack's state meanwhile. Nothing was changed."""


class PlanMismatchError(ApplyError):
    """The Plan contains what an update must not do, or the engine would do, or started to do, what the Plan does not
    contain."""


class ClusterUnreachableError(ApplyError):
    """The apiserver does not answer."""


class OtherClusterError(ApplyError):
    """The stack's state is that of another cluster."""


class LeaseHeldError(ApplyError):
    """Another writer holds the cluster's Lease."""

    def __init__(self, message: str, hint: str | None = None, *, holder: str = "") -> None:
        super().__init__(message, hint)
        self.holder = holder


class NamespaceMissingError(ApplyError):
    """The namespace of the Lease does not exist: the foundation is not deployed."""


class LeaseLostError(ApplyError):
    """The cluster's Lease was lost: running updates were interrupted."""


class UpdateInterruptedError(ApplyError):
    """The update was interrupted before it was completed. The objects that it created are in the state. Whether
    requests in progress are completed depends on the kubernetes provider."""


class WriterStoppingError(UpdateInterruptedError):
    """The writer is stopping."""

    def __init__(self) -> None:
        super().__init__(
            "the writer is stopping", "running operations are completed; start the command again to continue"
        )


class EngineKilledError(ApplyError):
    """Another process killed the engine, for example the kernel for lack of memory."""


class UpdateFailedError(ApplyError):
    """The engine failed for a reason that has no type of its own."""


@dataclass(frozen=True)
class LockHolder:
    """Who holds a stack's lock: one process of the engine."""

    user: str
    host: str
    pid: int
    since: str
    """RFC 3339."""

    def __str__(self) -> str:
        return f"{self.user}@{self.host} (pid {self.pid}) since {self.since}"


class LockedError(ApplyError):
    """The stack is locked by a process that may still be running."""

    def __init__(self, stack: str, holders: tuple[LockHolder, ...]) -> None:
        names = ", ".join(str(holder) for holder in holders) or "another update"
        super().__init__(
            f"stack {stack} is locked by {names}",
            "wait for that update to end; if its process is dead, run `pulumi cancel` on the stack",
        )
        self.holders = holders


class FailureKind(StrEnum):
    """Why one object was not created, changed or deleted."""

    CONFLICT = "Conflict"
    """Another field manager owns a field, or the object changed in between."""
    UNREACHABLE = "Unreachable"
    POLICY = "PolicyViolation"
    REFUSED = "Refused"
    """The apiserver or an admission webhook rejected the request."""
    NO_SUCH_KIND = "NoSuchKind"
    BEING_DELETED = "BeingDeleted"
    """An object of that name is still being deleted."""
    NOT_OURS = "NotOurs"
    """An object of that name exists and was not created by this environment."""
    GONE = "Gone"
    """The object to change no longer exists, or is being deleted."""
    NOT_STARTED = "NotStarted"
    """The update ended before the operation on this object."""
    OTHER = "Other"


RETRYABLE: Final = frozenset({FailureKind.CONFLICT, FailureKind.UNREACHABLE})
"""Failures that another attempt may avoid."""


@dataclass(frozen=True)
class Failure:
    """Why an operation on one object failed."""

    kind: FailureKind
    message: str

    @classmethod
    def of(cls, error: PlimsollError) -> "Failure":
        """Of each operation of an update that failed as a whole."""
        kind = FailureKind.NOT_STARTED
        if isinstance(error, ClusterUnreachableError | BackendUnreachableError):
            kind = FailureKind.UNREACHABLE
        elif isinstance(error, StateChangedError):
            kind = FailureKind.CONFLICT
        return cls(kind, error.message)

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.message}"


_LOCK: Final = re.compile(r"created by (?P<user>[^\s@]*)@(?P<host>\S+) \(pid (?P<pid>\d+)\) at (?P<since>\S+)")
"""How the engine names the holder of a lock."""

_KILLED: Final = re.compile(r"code: -(\d+)\b")
"""How Pulumi's Automation API reports a process that a signal ended."""

_Builder = Callable[[str, re.Match[str]], ApplyError]
"""Makes the error of a stack from what its pattern found in the output."""


def _locked(stack: str, found: re.Match[str]) -> ApplyError:
    holders = (
        LockHolder(each["user"], each["host"], int(each["pid"]), each["since"]) for each in _LOCK.finditer(found.string)
    )
    return LockedError(stack, tuple(holders))


def _killed(stack: str, found: re.Match[str]) -> ApplyError:
    return killed_error(f"stack {stack}", int(found[1]))


def killed_error(what: str, number: int) -> EngineKilledError:
    """The error for an engine that a signal ended; `what` it worked on, and the `number` of the signal."""
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    return EngineKilledError(
        f"{what}: the engine was ended by {name}",
        "it is started again; if this happens often, look whether the machine or the container lacks memory",
    )


_INTERRUPTED: Final = ("the update was interrupted", "the objects that it created are in the state; run it again")


def interrupted_error(stack: str) -> UpdateInterruptedError:
    """The error for an engine that its writer interrupted, whatever the engine and its plugins report."""
    message, hint = _INTERRUPTED
    return UpdateInterruptedError(f"stack {stack}: {message}", hint)


def unwritable(error: OSError, path: Path) -> StateFolderFullError:
    """Of a file or folder in the work folder."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return StateFolderFullError(
        f"{error.filename or path}: {error.strerror}",
        "free disk space in the work folder"
        if full
        else "give this account the right to read and write it, or set another work folder with --work-folder",
    )


def _as(kind: type[ApplyError], message: str, hint: str) -> _Builder:
    """A builder of errors of this type, whose message ends with a summary of the output."""
    return lambda stack, found: kind(f"stack {stack}: {message}: {_summary(found.string)}", hint)


_ENGINE_ERRORS: Final[tuple[tuple[re.Pattern[str], _Builder], ...]] = (
    (re.compile(r"currently locked by|\[409\] Conflict: Another update"), _locked),
    (
        re.compile(r"update canceled|\^C received|code: -2\b"),
        # Interrupted by another process; `interrupted_error` is for the writer's own signals.
        _as(UpdateInterruptedError, *_INTERRUPTED),
    ),
    (
        re.compile(r"incorrect passphrase|passphrase must be set|could not decrypt|failed to decrypt"),
        _as(PassphraseError, "the passphrase does not decrypt it", "name the file with the stack's passphrase"),
    ),
    (
        re.compile(r"no space left on device|disk quota exceeded|file too large"),
        _as(StateFolderFullError, "no disk space for its state", "free space in the folder of the backend"),
    ),
    (
        re.compile(r"snapshot integrity failure|failed to load checkpoint|unmarshal.*checkpoint"),
        _as(StateUnreadableError, "its state cannot be read", "restore it with `pulumi stack import` from a backup"),
    ),
    (
        re.compile(r"no resource plugin|could not load plugin|failed to load plugin|Could not attach to plugin"),
        _as(
            ProviderMissingError,
            "the kubernetes provider is missing",
            "run `pulumi plugin install resource kubernetes`",
        ),
    ),
    (
        # Before the words of a backend, which the cause that follows has too.
        re.compile(r"configured Kubernetes cluster is unreachable|the cluster at .* cannot be reached"),
        _as(ClusterUnreachableError, "the cluster is not reachable", "check that it runs, and the kubeconfig"),
    ),
    (
        re.compile(
            r"unable to open bucket|failed to (?:connect|list)|blob \(key.*\) \(code=(?!NotFound)|"
            r"problem logging in|could not (?:list|get) .*bucket|dial tcp|no such host|NoSuchBucket|InvalidAccessKeyId"
        ),
        _as(BackendUnreachableError, "its backend is not reachable", "check the backend's address and credentials"),
    ),
    (_KILLED, _killed),
)

_OBJECT_FAILURES: Final[tuple[tuple[re.Pattern[str], FailureKind], ...]] = (
    # The text of a webhook or an admission policy is anybody's.
    (re.compile(r"denied (?:the )?request"), FailureKind.REFUSED),
    (
        re.compile(r"cannot be reached|connection refused|i/o timeout|no such host|\bEOF\b|unreachable"),
        FailureKind.UNREACHABLE,
    ),
    (re.compile(r"conflict|has been modified", re.IGNORECASE), FailureKind.CONFLICT),
    (re.compile(r"object is being deleted"), FailureKind.BEING_DELETED),
    (re.compile(r"serves no |no matches for kind|could not find the requested resource"), FailureKind.NO_SUCH_KIND),
    (
        re.compile(
            r"denied|forbidden|is invalid|(?:Invalid|Unsupported|Required|Duplicate) value|immutable|not found|"
            r"already exists|quota"
        ),
        FailureKind.REFUSED,
    ),
)


def engine_error(stack: str, output: str) -> ApplyError:
    """The typed error behind what a failed CLI process printed (standard output and error together)."""
    for pattern, build in _ENGINE_ERRORS:
        if found := pattern.search(output):
            return build(stack, found)
    return UpdateFailedError(f"stack {stack}: {_summary(output)}")


def object_failure(message: str) -> Failure:
    """The failure behind the engine's diagnostics of one resource, which no policy pack refused."""
    text = " ".join(message.split()) or "the engine gave no reason"
    kind = next((kind for pattern, kind in _OBJECT_FAILURES if pattern.search(text)), FailureKind.OTHER)
    return Failure(kind, text)


def _summary(output: str) -> str:
    """The lines of the output with the error, at most 500 characters."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if "error" in line.lower()] or lines[-3:]
    return " ".join(dict.fromkeys(telling))[:500] or "the engine gave no reason"

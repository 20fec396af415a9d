"""Stale locks of the engine: told from living ones, and broken."""

import contextlib
import signal
import socket
from collections.abc import Iterable
from typing import Final

import psutil
import structlog

from plimsoll.apply.engine import HOLDER, end_session
from plimsoll.apply.errors import LockedError, LockHolder
from plimsoll.apply.stack import CapacityStack

_END_SECONDS: Final = 20.0

log = structlog.get_logger(__name__)


def break_stale(stack: CapacityStack, error: LockedError, identity: str, expired_holders: Iterable[str]) -> None:
    """Breaks the lock where each of its holders is known to be dead; else raises the LockedError.

    The caller holds the environment's Lease. A holder is dead where its host is that of a writer whose Lease has
    expired, or where it was on this host and its process is no more. An engine that outlived its writer on this host
    is ended first.
    """
    dead_hosts = {holder.rsplit("_", 2)[0] for holder in expired_holders}
    for holder in error.holders:
        if holder.host == socket.gethostname():
            if not _ended_here(holder, identity):
                raise error
        elif holder.host not in dead_hosts:
            raise error
    if not error.holders:
        raise error
    log.warning("breaking the lock of a dead update", stack=stack.name, holders=[str(each) for each in error.holders])
    stack.break_lock()


def _ended_here(holder: LockHolder, identity: str) -> bool:
    """Whether the holder's process on this host is gone, after ending it where it is an orphan of ours."""
    try:
        process = psutil.Process(holder.pid)
        if not process.name().startswith("pulumi"):
            return True  # the id was given to another program
        writer = process.environ().get(HOLDER)
    except psutil.NoSuchProcess:
        return True
    except psutil.Error:
        return False
    if not writer or writer == identity or lives(writer):
        return False
    log.warning("ending an engine whose writer is dead", pid=holder.pid, writer=writer)
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_END_SECONDS)
        except psutil.TimeoutExpired:
            process.kill()
            process.wait(_END_SECONDS)
    end_session(holder.pid)
    return True


def lives(writer: str) -> bool:
    """Whether the process in an identity `hostname_pid_random` of this host is still there."""
    parts = writer.rsplit("_", 2)
    return len(parts) == 3 and parts[1].isdecimal() and psutil.pid_exists(int(parts[1]))

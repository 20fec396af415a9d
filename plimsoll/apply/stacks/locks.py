"""Breaks stale locks of the engine."""

import contextlib
import signal
import socket
from collections.abc import Iterable
from typing import Final

import psutil
import structlog

from plimsoll.apply.engine import HOLDER, CapacityStack, end_session, is_writer_running
from plimsoll.apply.errors import LockedError, LockHolder

_END_SECONDS: Final = 20.0
"""Seconds after SIGINT until an engine is killed, and then for its end."""

log = structlog.get_logger(__name__)


def break_stale(
    stack: CapacityStack, holders: tuple[LockHolder, ...], identity: str, expired_holders: Iterable[str]
) -> None:
    """Breaks the stack's lock if all of its holders have ended. Raises LockedError otherwise, or if none is known.

    The caller holds the environment's Lease. A holder has ended if its host is that of a writer whose Lease has
    expired, or if it was on this host and its process does not exist. An engine on this host that outlived its writer
    is ended first.
    """
    dead_hosts = {holder.rsplit("_", 2)[0] for holder in expired_holders}

    def has_ended(holder: LockHolder) -> bool:
        return _ended_here(holder, identity) if holder.host == socket.gethostname() else holder.host in dead_hosts

    if not holders or not all(map(has_ended, holders)):
        raise LockedError(stack.name, holders)
    log.warning("breaking the lock of an ended process", stack=stack.name, holders=[str(each) for each in holders])
    stack.break_lock()


def _ended_here(holder: LockHolder, identity: str) -> bool:
    """Whether the holder's process on this host has ended, after ending it if its writer has ended."""
    try:
        process = psutil.Process(holder.pid)
        if not process.name().startswith("pulumi"):
            return True  # the id was reused by another program
        writer = process.environ().get(HOLDER)
    except psutil.NoSuchProcess:
        return True
    except psutil.Error:
        return False
    if not writer or writer == identity or is_writer_running(writer):
        return False
    log.warning("ending an engine whose writer has ended", pid=holder.pid, writer=writer)
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_END_SECONDS)
        except psutil.TimeoutExpired:
            process.kill()
            process.wait(_END_SECONDS)
    end_session(holder.pid)
    return True

"""Supervisor: starts, watches and stops the processes of a sandbox.

It sends events to the caller of `up` over a socket, a JSON object per line, and finally `up` or `failed`. If the socket
closes before the caller has detached (after a crash or Ctrl+C), everything is stopped and removed. The supervisor has a
single thread, in which it creates its children, see `child.Child`.
"""

import asyncio
import os
import signal
import socket
import time
from typing import Final

import orjson
import structlog

from plimsoll.errors import PlimsollError
from plimsoll.sandbox import state
from plimsoll.sandbox.folder import Folder
from plimsoll.sandbox.processes.startup import Startup, in_stopping_order
from plimsoll.sandbox.state import ProcessState, Settings, State

DETACH: Final = b"g"
"""What the caller sends to detach when the sandbox is up."""
_STOP_SECONDS: Final = 5

log = structlog.get_logger()


class Supervisor:
    """The supervisor of one sandbox."""

    def __init__(self, folder: Folder, settings: Settings, channel: socket.socket, *, stop_with_caller: bool) -> None:
        self._folder, self._settings, self._channel = folder, settings, channel
        self._stop_with_caller = stop_with_caller
        self._startup = Startup(folder, settings, self._on_event)
        self._state = State(supervisor=os.getpid(), server="")
        self._detached = False
        self._abandoned = False
        self._stop = asyncio.Event()

    async def run(self) -> bool:
        """Runs until it is stopped. Returns False if the folder is of no further use: nothing started, or the caller
        did not detach."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._stop.set)
        self._channel.setblocking(False)
        loop.add_reader(self._channel, self._read_channel)
        try:
            if not await self._started():
                return False
            self._send({"event": "up", "seconds": self._state.startup_seconds})
            await self._watch()
        finally:
            await self._end()
        return not self._abandoned

    async def _started(self) -> bool:
        began = time.monotonic()
        stop = asyncio.ensure_future(self._stop.wait())
        work = asyncio.ensure_future(self._startup.run())
        await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            work.cancel()
            await asyncio.wait({work})
            return False
        stop.cancel()
        try:
            work.result()
            self._state.ready, self._state.startup_seconds = True, round(time.monotonic() - began, 2)
            self._record()
        except PlimsollError as error:
            self._fail(error)
            return False
        except OSError as error:
            self._fail(PlimsollError(f"Cannot start the sandbox: {error}.", "Set PLIMSOLL_HOME to another folder."))
            return False
        return True

    async def _watch(self) -> None:
        """Records each process that ends. None is restarted, so that tests can see that it has ended."""
        stop = asyncio.ensure_future(self._stop.wait())
        running = {asyncio.ensure_future(child.wait()): child for child in self._startup.children}
        while not stop.done():
            done, _ = await asyncio.wait({stop, *running}, return_when=asyncio.FIRST_COMPLETED)
            for future in done - {stop}:
                child = running.pop(future)
                log.error("process ended", process=child.name, exit_code=child.exit_code)
                self._record()

    async def _end(self) -> None:
        for together in in_stopping_order(self._startup.children):
            await asyncio.gather(*(child.stop(_STOP_SECONDS) for child in together))
        log.info("all processes are stopped", processes=len(self._startup.children))

    def _on_event(self, event: str, name: str) -> None:
        self._record()
        self._send({"event": event, "name": name})

    def _record(self) -> None:
        ports = self._startup.ports
        self._state.server = f"https://127.0.0.1:{ports['kube-apiserver']}"
        self._state.processes = [
            ProcessState(name=c.name, pid=c.pid, created=c.created, port=ports.get(c.name), exit_code=c.exit_code)
            for c in self._startup.children
        ]
        state.write(self._folder.state, self._state)

    def _fail(self, error: PlimsollError) -> None:
        log.error("the sandbox could not be started", message=error.message)
        self._send({"event": "failed", "message": error.message, "hint": error.hint})

    def _send(self, event: dict[str, object]) -> None:
        try:
            self._channel.sendall(orjson.dumps(event) + b"\n")
        except OSError:
            log.debug("event not sent: the caller has closed the socket", sent=event)

    def _read_channel(self) -> None:
        try:
            received = self._channel.recv(64)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        if received:
            self._detached = self._detached or (DETACH in received and not self._stop_with_caller)
            return
        asyncio.get_running_loop().remove_reader(self._channel)
        if not self._detached:
            log.info("the caller has closed the socket: stopping the sandbox")
            self._abandoned = True
            self._stop.set()

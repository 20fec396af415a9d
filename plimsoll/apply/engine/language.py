"""Runs an inline program for the engine, and ends cleanly whatever becomes of the engine."""

import asyncio
import contextvars
import platform
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import grpc
import pulumi
import structlog
from pulumi.runtime import reset_options, run_in_stack
from pulumi.runtime.proto import LanguageRuntimeServicer, language_pb2, plugin_pb2

from plimsoll.apply.engine.program import Program

_REGISTRATIONS: Final = 64
"""At once; each waits in a thread for its object."""

_CANCELLATIONS: Final = 4

log = structlog.get_logger(__name__)


class InlineLanguage(LanguageRuntimeServicer):
    """The language host of one update.

    The library's own fails on its own messages, and leaves its event loop open, where the engine ends first: on every
    interrupt, and on every update in which something fails.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def end(self) -> None:
        """The engine has gone: ends the program, which would wait for answers for ever."""
        self._program.call_off()
        with self._lock:
            if self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._loop.stop)

    def About(self, request: Any, context: Any) -> Any:  # noqa: N802
        return language_pb2.AboutResponse(executable=sys.executable, version=platform.python_version())

    def GetPluginInfo(self, request: Any, context: Any) -> Any:  # noqa: N802
        return plugin_pb2.PluginInfo()

    def GetRequiredPlugins(self, request: Any, context: Any) -> Any:  # noqa: N802
        return language_pb2.GetRequiredPluginsResponse()

    def GetRequiredPackages(self, request: Any, context: Any) -> Any:  # noqa: N802
        return language_pb2.GetRequiredPackagesResponse()

    def Run(self, request: Any, context: Any) -> Any:  # noqa: N802
        # The library keeps an update's settings in context variables.
        return contextvars.copy_context().run(self._run, request)

    def _run(self, request: Any) -> Any:
        reset_options(
            project=request.project,
            monitor_address=request.monitor_address,
            engine_address=request.args[0] if request.args else "",
            stack=request.stack,
            parallel=request.parallel,
            preview=request.dryRun,
            organization=request.organization or "organization",
        )
        response = language_pb2.RunResponse()
        loop = asyncio.new_event_loop()
        with self._lock:
            self._loop = loop
        loop.set_default_executor(ThreadPoolExecutor(_REGISTRATIONS, thread_name_prefix=f"register-{request.stack}"))
        # Futures that nobody asked: those of resources that failed, which the engine reports.
        loop.set_exception_handler(lambda *_: None)
        try:
            loop.run_until_complete(run_in_stack(self._program))
        except pulumi.RunError as error:
            response.error = str(error)
        except grpc.RpcError as error:
            log.debug("the engine has ended", stack=request.stack, error=str(error.code()))
        except Exception as error:
            response.error = f"{type(error).__name__}: {error}"
        finally:
            with self._lock:
                self._loop = None
            loop.run_until_complete(_wind_up())
            loop.close()
        return response


async def _wind_up() -> None:
    """Ends what an unfinished program has left; cancelled once, the library waits anew."""
    for _ in range(_CANCELLATIONS):
        pending = asyncio.all_tasks() - {asyncio.current_task()}
        if not pending:
            break
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=0.5)
    await asyncio.get_running_loop().shutdown_default_executor()

"""Runs an inline program for the engine, and ends cleanly if the engine ends first."""

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
"""Maximum number of concurrent registrations; each uses a thread."""

_CANCELLATIONS: Final = 4
"""How often the tasks of an unfinished program are cancelled: after a single cancellation, the library waits again."""

log = structlog.get_logger(__name__)


class LanguageHost(LanguageRuntimeServicer):
    """The language host of an operation that runs no program. Otherwise the engine would start Python's, which first
    lists the packages of its environment."""

    def About(self, request: Any, context: Any) -> Any:  # noqa: N802
        return language_pb2.AboutResponse(executable=sys.executable, version=platform.python_version())

    def GetPluginInfo(self, request: Any, context: Any) -> Any:  # noqa: N802
        return plugin_pb2.PluginInfo()

    def GetRequiredPlugins(self, request: Any, context: Any) -> Any:  # noqa: N802
        return language_pb2.GetRequiredPluginsResponse()

    def GetRequiredPackages(self, request: Any, context: Any) -> Any:  # noqa: N802
        return language_pb2.GetRequiredPackagesResponse()


class InlineLanguage(LanguageHost):
    """The language host of one update.

    That of the Automation API fails on its own messages, and does not close its event loop, if the engine ends first:
    after every interrupt, and after every update with a failure.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def end(self) -> None:
        """Ends the program after the engine has ended; it would otherwise wait for responses forever."""
        self._program.call_off()
        with self._lock:
            if self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._loop.stop)

    def Run(self, request: Any, context: Any) -> Any:  # noqa: N802
        # The library stores the settings of an update in context variables.
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
        # Futures that were not awaited: those of failed resources, which the engine reports.
        loop.set_exception_handler(lambda *_: None)
        try:
            loop.run_until_complete(run_in_stack(self._program))
        except pulumi.RunError as error:
            response.error = str(error)
        except grpc.RpcError as error:
            log.debug("the engine ended while the program ran", stack=request.stack, error=str(error.code()))
        except Exception as error:
            response.error = f"{type(error).__name__}: {error}"
        finally:
            with self._lock:
                self._loop = None
            loop.run_until_complete(_shut_down())
            loop.close()
        return response


async def _shut_down() -> None:
    """Ends the tasks of an unfinished program, and the threads of its registrations."""
    for _ in range(_CANCELLATIONS):
        pending = asyncio.all_tasks() - {asyncio.current_task()}
        if not pending:
            break
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=0.5)
    await asyncio.get_running_loop().shutdown_default_executor()

"""Runs an inline program for the engine, and ends cleanly whatever becomes of the engine."""

import asyncio
import contextvars
import platform
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import grpc
import pulumi
import structlog
from pulumi.runtime import reset_options, run_in_stack
from pulumi.runtime.proto import LanguageRuntimeServicer, language_pb2, plugin_pb2

from plimsoll.apply.program import Program

_REGISTRATIONS: Final = 64
"""At once; each waits in a thread for its object."""

log = structlog.get_logger(__name__)


class InlineLanguage(LanguageRuntimeServicer):
    """The language host of one update.

    The library's own fails on its own messages, and leaves its event loop open, where the engine ends first: on every
    interrupt, and on every update in which something fails.
    """

    def __init__(self, program: Program) -> None:
        self._program = program

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
        loop.set_default_executor(ThreadPoolExecutor(_REGISTRATIONS, thread_name_prefix=f"register-{request.stack}"))
        # Futures that nobody asked: those of resources that failed, which the engine reports.
        loop.set_exception_handler(lambda *_: None)
        try:
            loop.run_until_complete(run_in_stack(self._program))
        except pulumi.RunError as error:
            response.error = str(error)
        except grpc.RpcError as error:
            log.debug("the engine has gone", stack=request.stack, error=str(error.code()))
        except Exception as error:
            response.error = f"{type(error).__name__}: {error}"
        finally:
            loop.run_until_complete(_wind_up(loop))
            loop.close()
        return response


async def _wind_up(loop: asyncio.AbstractEventLoop) -> None:
    """Ends what an unfinished program has left."""
    pending = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    await loop.shutdown_default_executor()

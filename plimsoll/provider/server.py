# ruff: noqa: N802 (methods are named by the protocol)
"""The gRPC server of the built-in provider, to whose port the engine attaches."""

import functools
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NoReturn, Self

import grpc
import structlog
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from plimsoll.errors import PlimsollError
from plimsoll.kube import Kubeconfig
from plimsoll.provider import operations
from plimsoll.provider.check import check
from plimsoll.provider.comparison import Change, parse_property_path, property_path
from plimsoll.provider.configuration import check_config, diff_config
from plimsoll.provider.construct import construct
from plimsoll.provider.replacement import diff
from plimsoll.provider.session import Call, Cluster, Sessions, Settings
from plimsoll.provider.state import InitializationFailedError, State
from plimsoll.provider.values import Properties, decode, encode

Create = Callable[[Call, Properties], State]

PLUGIN_VERSION: Final = version("pulumi-kubernetes")
"""The version of pulumi-kubernetes whose tokens and state format are implemented: that of the installed SDK."""
_WORKERS: Final = 64
"""Maximum number of concurrent calls; each waiting call uses a thread."""

log = structlog.get_logger(__name__)


def _answered(method: Callable[..., Any]) -> Callable[..., Any]:
    """Converts a PlimsollError into a gRPC status. Of another error only its type and place are logged, because its
    message may contain a secret."""

    @functools.wraps(method)
    def wrapper(self: "_Provider", request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return method(self, request, context)
        except InitializationFailedError as error:
            _abort_with_state(context, error)
        except PlimsollError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        except Exception as error:
            log.error(
                "the built-in kubernetes provider failed",
                method=method.__name__,
                error=type(error).__name__,
                at="".join(traceback.format_tb(error.__traceback__)),
            )
            context.abort(grpc.StatusCode.INTERNAL, f"the built-in kubernetes provider failed: {type(error).__name__}")

    return wrapper


def _in_own_thread(method: Callable[..., Any]) -> Callable[..., Any]:
    """Starts a method also while calls wait in all threads of the server: grpc runs it in the pool of this
    attribute."""
    vars(method)["experimental_thread_pool"] = ThreadPoolExecutor(1, thread_name_prefix=method.__name__)
    return method


def _abort_with_state(context: grpc.ServicerContext, error: InitializationFailedError) -> NoReturn:
    """Ends the call with a state, which the engine stores, and marks the resource as not initialized."""
    details = provider_pb2.ErrorResourceInitFailed(
        id=error.state.id, properties=encode(error.state.properties, underscored=True), reasons=[error.message]
    )
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(error))
    status.details.add().Pack(details)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, str(error))
    raise AssertionError("abort returns never")


class _Provider(provider_pb2_grpc.ResourceProviderServicer):
    def __init__(self, cluster: Cluster, create: Create) -> None:
        self._cluster = cluster
        self._create = create
        self._sessions = Sessions()

    @_answered
    def Handshake(self, request: Any, context: Any) -> Any:
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True, supports_autonaming_configuration=True)

    @_answered
    def Attach(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()

    @_answered
    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo(version=PLUGIN_VERSION)

    @_answered
    def GetSchema(self, request: Any, context: Any) -> Any:
        raise PlimsollError(
            "the built-in provider serves no schema",
            "write the program in a language with an SDK, or use the kubernetes plugin (provider: plugin)",
        )

    @_answered
    def CheckConfig(self, request: Any, context: Any) -> Any:
        failures = [provider_pb2.CheckFailure(**failure) for failure in check_config(decode(request.news))]
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    @_answered
    def DiffConfig(self, request: Any, context: Any) -> Any:
        changed, replaced = diff_config(decode(request.olds), decode(request.news))
        some = provider_pb2.DiffResponse.DIFF_SOME if changed else provider_pb2.DiffResponse.DIFF_NONE
        return provider_pb2.DiffResponse(changes=some, diffs=changed, replaces=replaced)

    @_answered
    def Configure(self, request: Any, context: Any) -> Any:
        session = self._cluster.configure(Settings(request.variables))
        self._sessions.put(context.peer(), session)
        return provider_pb2.ConfigureResponse(
            acceptSecrets=True, supportsPreview=True, supports_autonaming_configuration=True
        )

    @_answered
    def Check(self, request: Any, context: Any) -> Any:
        session = self._sessions.get(context.peer())
        inputs = check(session, request)
        return provider_pb2.CheckResponse(inputs=encode(inputs))

    @_answered
    def Diff(self, request: Any, context: Any) -> Any:
        session = self._sessions.get(context.peer())
        ignored = [parse_property_path(path) for path in request.ignoreChanges]
        found = diff(session, decode(request.olds), decode(request.news), ignored)
        response = provider_pb2.DiffResponse(
            changes=provider_pb2.DiffResponse.DIFF_SOME if found.changed else provider_pb2.DiffResponse.DIFF_NONE,
            replaces=[property_path(change.path) for change in found.replaced],
            deleteBeforeReplace=found.deletes_first,
            hasDetailedDiff=True,
        )
        for change in found.changed:
            detail = response.detailedDiff[property_path(change.path)]
            detail.kind = _kind_of_change(change, change in found.replaced)
            detail.inputDiff = change.verb == "delete"
        return response

    @_answered
    def Create(self, request: Any, context: Any) -> Any:
        call = self._call(request, context, request.preview)
        state = self._create(call, decode(request.properties))
        return provider_pb2.CreateResponse(id=state.id, properties=encode(state.properties, underscored=True))

    @_answered
    def Update(self, request: Any, context: Any) -> Any:
        call = self._call(request, context, request.preview)
        ignored = [parse_property_path(path) for path in request.ignoreChanges]
        state = operations.update(call, decode(request.olds), decode(request.news), ignored)
        return provider_pb2.UpdateResponse(properties=encode(state.properties, underscored=True))

    @_answered
    def Read(self, request: Any, context: Any) -> Any:
        session = self._sessions.get(context.peer())
        state = operations.read(session, request.type, request.id, decode(request.inputs), decode(request.properties))
        return provider_pb2.ReadResponse(
            id=state.id, properties=encode(state.properties, underscored=True), inputs=encode(state.inputs)
        )

    @_answered
    def Delete(self, request: Any, context: Any) -> Any:
        operations.delete(self._call(request, context), request.type, request.id, decode(request.properties))
        return empty_pb2.Empty()

    @_answered
    def Invoke(self, request: Any, context: Any) -> Any:
        raise PlimsollError(
            f"the function {request.tok} is not supported by the built-in kubernetes provider",
            "use the kubernetes plugin for this stack (provider: plugin)",
        )

    @_answered
    def Construct(self, request: Any, context: Any) -> Any:
        return construct(self._sessions.get(context.peer()), request, PLUGIN_VERSION, context.add_callback)

    @_in_own_thread
    @_answered
    def Cancel(self, request: Any, context: Any) -> Any:
        self._sessions.cancel(context.peer())
        return empty_pb2.Empty()

    def _call(self, request: Any, context: grpc.ServicerContext, preview: bool = False) -> Call:
        """A call whose waits end on Cancel, and when the engine ends."""
        session = self._sessions.get(context.peer())
        interruption = session.interruption()
        context.add_callback(interruption.stop)
        return Call(session, interruption, request.timeout, preview)


def _kind_of_change(change: Change, replaced: bool) -> Any:
    kinds = provider_pb2.PropertyDiff.Kind
    name = {"add": "ADD", "delete": "DELETE", "update": "UPDATE"}[change.verb]
    return kinds.Value(f"{name}_REPLACE" if replaced else name)


class Served:
    """A running built-in provider; `port` is on loopback. As a context manager, it stops at the end."""

    def __init__(self, server: grpc.Server, port: int, cluster: Cluster) -> None:
        self._server = server
        self._cluster = cluster
        self.port = port

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables with which an engine attaches to it instead of starting the plugin."""
        return {"PULUMI_DEBUG_PROVIDERS": f"kubernetes:{self.port}"}

    def stop(self, grace: float = 1.0) -> None:
        """Stops the server and ends waiting calls; `grace` in seconds."""
        self._server.stop(grace).wait()
        self._cluster.close()

    def wait(self) -> None:
        """Blocks until it is stopped."""
        self._server.wait_for_termination()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def serve(kubeconfig: Path | None = None, context: str | None = None, create: Create = operations.create) -> Served:
    """Serves the kubernetes tokens against one cluster, on a free port of 127.0.0.1.

    Without a kubeconfig: `KUBECONFIG`, the service account of the pod, or `~/.kube/config`. Makes no request to the
    cluster until an engine asks. `create` makes each object. Raises PlimsollError where the kubeconfig cannot be used.
    """
    cluster = Cluster(Kubeconfig.read(str(kubeconfig), context) if kubeconfig else Kubeconfig.ambient(context))
    server = grpc.server(
        ThreadPoolExecutor(_WORKERS, thread_name_prefix="provider"),
        options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)],
    )
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(_Provider(cluster, create), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    log.info(
        "the built-in provider serves the kubernetes tokens instead of the plugin",
        port=port,
        cluster=cluster.served.server,
    )
    return Served(server, port, cluster)

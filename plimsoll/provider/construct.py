"""The engine's Construct call: a chart becomes a component whose children are its objects, registered with the engine's
monitor."""

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, NamedTuple

import grpc
from pulumi.runtime.proto import provider_pb2, resource_pb2, resource_pb2_grpc

from plimsoll.errors import PlimsollError
from plimsoll.kube import SKIP_AWAIT, Object, annotation, kind_of, type_of
from plimsoll.provider.chart import Chart, ChartError, prerequisites, resource_name
from plimsoll.provider.session import Session
from plimsoll.provider.values import decode, encode, has_unknowns, mark_secrets, plain, reference

CHART: Final = "kubernetes:helm.sh/v4:Chart"
_PARALLEL: Final = 16
_PACKAGE: Final = "kubernetes"


class _Registered(NamedTuple):
    urn: str
    id: str


def construct(
    session: Session, request: provider_pb2.ConstructRequest, version: str, on_end: Callable[[Callable[[], None]], Any]
) -> provider_pb2.ConstructResponse:
    """Renders the chart and registers its objects. With unknown inputs (a preview), the component alone.

    `version` is the plugin's: with it, children share the program's default provider. `on_end` takes what to call
    when the engine gives up. Raises PlimsollError for other components than charts.
    """
    if request.type != CHART:
        raise PlimsollError(
            f"the component {request.type} is not supported by the built-in kubernetes provider",
            "declare its objects one by one, or use the kubernetes plugin (provider: plugin)",
        )
    inputs = decode(request.inputs)
    with grpc.insecure_channel(
        request.monitorEndpoint,
        options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)],
    ) as channel:
        on_end(channel.close)
        monitor = _Monitor(channel, request, version)
        component = monitor.component()
        children: list[_Registered] = []
        if not has_unknowns(inputs):
            prefix = plain(inputs["resourcePrefix"]) if "resourcePrefix" in inputs else request.name
            objects = Chart.of(request.name, inputs, session).render(session)
            if plain(inputs.get("skipAwait")):
                objects = [_unawaited(obj) for obj in objects]
            children = _register_all(monitor, component, str(prefix), objects)
        outputs = {"resources": [reference(child.urn, child.id, version) for child in children]}
        monitor.outputs(component, outputs)
    response = provider_pb2.ConstructResponse(urn=component, state=encode(outputs))
    response.stateDependencies["resources"].urns.extend(child.urn for child in children)
    return response


def _register_all(monitor: "_Monitor", parent: str, prefix: str, objects: list[Object]) -> list[_Registered]:
    """Registers each object when its dependencies are registered; independent objects concurrently."""
    needed = prerequisites(objects)
    order = TopologicalSorter(needed)
    try:
        order.prepare()
    except CycleError as error:
        names = ", ".join(resource_name("", objects[position]) for position in error.args[1])
        raise ChartError(f"objects of a chart depend on each other: {names}", "break the circle") from None
    done: dict[int, _Registered] = {}
    running: dict[Future[_Registered], int] = {}
    with ThreadPoolExecutor(_PARALLEL, thread_name_prefix="chart") as pool:
        while order.is_active():
            for position in order.get_ready():
                obj = objects[position]
                urns = [done[other].urn for other in sorted(needed[position])]
                running[pool.submit(monitor.resource, parent, resource_name(prefix, obj), obj, urns)] = position
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                position = running.pop(future)
                done[position] = future.result()
                order.done(position)
    return [done[position] for position in range(len(objects))]


class _Monitor:
    """The engine's monitor during a Construct call."""

    def __init__(self, channel: grpc.Channel, request: provider_pb2.ConstructRequest, version: str) -> None:
        self._stub = resource_pb2_grpc.ResourceMonitorStub(channel)
        self._request = request
        self._version = version

    def component(self) -> str:
        """The URN of the chart's component."""
        asked = self._request
        return self._register(
            resource_pb2.RegisterResourceRequest(
                type=asked.type,
                name=asked.name,
                parent=asked.parent,
                custom=False,
                protect=asked.protect,
                dependencies=asked.dependencies,
                providers=dict(asked.providers),
                aliases=asked.aliases,
                aliasSpecs=True,
                acceptSecrets=True,
                acceptResources=True,
                supportsPartialValues=True,
            )
        ).urn

    def resource(self, parent: str, name: str, obj: Object, dependencies: list[str]) -> _Registered:
        asked = self._request
        answer = self._register(
            resource_pb2.RegisterResourceRequest(
                type=type_of(kind_of(obj)),
                name=name,
                parent=parent,
                custom=True,
                object=encode(mark_secrets(plain(obj), obj)),
                dependencies=dependencies,
                provider=asked.providers.get(_PACKAGE, ""),
                version=self._version,
                protect=asked.protect,
                retainOnDelete=asked.retainOnDelete or annotation(obj, "helm.sh/resource-policy") == "keep",
                deletedWith=asked.deletedWith,
                acceptSecrets=True,
                acceptResources=True,
                supportsPartialValues=True,
            )
        )
        return _Registered(answer.urn, answer.id)

    def outputs(self, urn: str, outputs: dict[str, Any]) -> None:
        self._stub.RegisterResourceOutputs(
            resource_pb2.RegisterResourceOutputsRequest(urn=urn, outputs=encode(outputs))
        )

    def _register(self, request: resource_pb2.RegisterResourceRequest) -> resource_pb2.RegisterResourceResponse:
        try:
            answer: resource_pb2.RegisterResourceResponse = self._stub.RegisterResource(request)
        except (grpc.RpcError, ValueError):
            # The engine has reported the reason for the resource itself.
            raise ChartError(f"chart {self._request.name}: {request.name} could not be registered") from None
        return answer


def _unawaited(obj: Object) -> Object:
    metadata = obj["metadata"]
    return obj | {"metadata": metadata | {"annotations": (metadata.get("annotations") or {}) | {SKIP_AWAIT: "true"}}}

"""The capacity program: waits until a Plan is applied, then registers its resources, the changed ones first."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import grpc
import pulumi
from pulumi.runtime import get_root_resource
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.settings import get_monitor

from plimsoll.apply.engine.properties import encode
from plimsoll.apply.identity import ClusterIdentity
from plimsoll.apply.settings import PROJECT

PROVIDER_NAME: Final = "cluster"
"""Logical name of the provider resource, and of the component that records the cluster."""
STACK_TYPE: Final = "pulumi:pulumi:Stack"
PROVIDER_TYPE: Final = "pulumi:providers:kubernetes"
CLUSTER_TYPE: Final = "plimsoll:index:Cluster"
"""Type of the component that records the cluster in the state; it has no children."""


class DeclaredResource(NamedTuple):
    """One resource of the program."""

    token: str
    """Type token, such as `kubernetes:apps/v1:Deployment`."""
    name: str
    """Logical name, which never changes for an object."""
    inputs: Mapping[str, Any]


Deleting = Callable[[Collection[str]], Iterable[DeclaredResource]]


class Registrations(NamedTuple):
    """The resources that a program registers. The engine deletes all others that are in the state."""

    first: tuple[DeclaredResource, ...]
    """New and changed resources: they are registered, and awaited, first."""
    kept: tuple[DeclaredResource, ...]
    """Unchanged resources, as in the state."""
    delete: Deleting = lambda _: ()
    """Deletes the objects of the others, on a thread, when the engine and its policy packs have accepted `first`: it
    gets the names of those whose operation failed. Returns those whose objects stay: they are registered with
    `kept`."""


class CalledOffError(pulumi.RunError):
    """Ends a program without changes: after an error, the engine deletes nothing."""

    def __init__(self) -> None:
        super().__init__("cancelled: nothing was changed")


class Program:
    """One run of the capacity program: it calls `on_ready`, and then waits for `release` or `call_off`.

    These may be called from any thread, before or after its start."""

    def __init__(
        self,
        provider_inputs: Mapping[str, str],
        version: str,
        cluster: ClusterIdentity,
        on_ready: Callable[[], None],
    ) -> None:
        self._provider_inputs = dict(provider_inputs)
        self._cluster = cluster
        self._version = version
        self._on_ready = on_ready
        self._registrations: Future[Registrations] = Future()
        """Set by the first of `release` and `call_off`, on any thread."""

    def release(self, registrations: Registrations) -> None:
        """Lets the program register these resources, unless it was called off."""
        with contextlib.suppress(InvalidStateError):
            self._registrations.set_result(registrations)

    def call_off(self) -> None:
        """Ends the program without changes, unless it was released."""
        with contextlib.suppress(InvalidStateError):
            self._registrations.set_exception(CalledOffError())

    async def __call__(self) -> None:
        provider = pulumi.ProviderResource(
            "kubernetes", PROVIDER_NAME, self._provider_inputs, pulumi.ResourceOptions(version=self._version)
        )
        registrar = await Registrar.of(provider)
        if refusal := await registrar.register_cluster(self._cluster):
            raise pulumi.RunError(refusal)
        self._on_ready()
        registrations = await asyncio.wrap_future(self._registrations)
        # Unchanged resources are registered afterwards, because a hundred registrations before would delay the new
        # objects by a second. If one is refused, the others are registered all the same, but the program must then
        # fail: otherwise the engine would delete what was not registered.
        refused = await registrar.register_all(registrations.first)
        staying = () if refused else await asyncio.to_thread(registrations.delete, frozenset(registrar.failed))
        refused += await registrar.register_all((*registrations.kept, *staying))
        if refused:
            raise pulumi.RunError(refused[0])


@dataclass(frozen=True)
class Registrar:
    """Registers the resources of one program with the engine's monitor, below the stack and with its provider.

    This does not use the library's resource classes: they take several times as long, because they create an output for
    every field and send the engine a debug message for every step.
    """

    monitor: Any
    parent: str
    provider: str
    failed: set[str] = field(default_factory=set)
    """Names of the resources whose operation failed."""

    @classmethod
    async def of(cls, provider: pulumi.ProviderResource) -> "Registrar":
        """The registrar of a running program, after its provider was registered."""
        root = get_root_resource()
        assert root is not None
        reference = f"{await provider.urn.future()}::{await provider.id.future()}"
        return cls(get_monitor(), str(await root.urn.future()), reference)

    async def register_all(self, resources: Iterable[DeclaredResource]) -> list[str]:
        """Registers the resources and waits until the engine has processed each. Returns those that it did not accept,
        with reasons.

        Operations that failed are not among them, because the engine reports these itself; they are in `failed`.
        """
        answers = await asyncio.gather(*(self._answer(each.name, self._request(each)) for each in resources))
        return [answer for answer in answers if answer is not None]

    async def register_cluster(self, identity: ClusterIdentity) -> str | None:
        """Records the cluster. Returns why the engine did not accept it; None if it did."""
        request = resource_pb2.RegisterResourceRequest(
            type=CLUSTER_TYPE, name=PROVIDER_NAME, parent=self.parent, custom=False, object=encode(identity.record())
        )
        return await self._answer(PROVIDER_NAME, request)

    async def _answer(self, name: str, request: resource_pb2.RegisterResourceRequest) -> str | None:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[str | None] = loop.create_future()

        def on_done(call: grpc.Future) -> None:
            refusal = None if call.code() is grpc.StatusCode.OK else f"{name}: {call.details()}"
            if refusal is None and call.result().result != resource_pb2.Result.SUCCESS:
                self.failed.add(name)
            with contextlib.suppress(RuntimeError):  # the program has ended already
                loop.call_soon_threadsafe(_set_result, done, refusal)

        self.monitor.RegisterResource.future(request).add_done_callback(on_done)
        return await done

    def _request(self, declared: DeclaredResource) -> resource_pb2.RegisterResourceRequest:
        return resource_pb2.RegisterResourceRequest(
            type=declared.token,
            name=declared.name,
            parent=self.parent,
            custom=True,
            object=encode(declared.inputs),
            provider=self.provider,
            acceptSecrets=True,
            acceptResources=True,
            # The plugin would delete by name, whatever object has it now, and wait until the object's finalizers are
            # gone: the stack would be locked for as long as a node is drained.
            retainOnDelete=True,
            supportsPartialValues=True,
            supportsResultReporting=True,
        )


def _set_result(done: "asyncio.Future[str | None]", refusal: str | None) -> None:
    if not done.done():
        done.set_result(refusal)


def urn_of(stack: str, declared: DeclaredResource) -> str:
    return _urn(stack, declared.token, declared.name)


def provider_urn(stack: str) -> str:
    return _urn(stack, PROVIDER_TYPE, PROVIDER_NAME)


def cluster_urn(stack: str) -> str:
    return _urn(stack, CLUSTER_TYPE, PROVIDER_NAME)


def stack_urn(stack: str) -> str:
    return _urn(stack, STACK_TYPE, f"{PROJECT}-{stack}")


def _urn(stack: str, token: str, name: str) -> str:
    return f"urn:pulumi:{stack}::{PROJECT}::{token}::{name}"

"""The capacity program: blocks until a delta comes, registers what is new, then what stays."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import grpc
import pulumi
from pulumi.runtime import get_root_resource
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.settings import get_monitor

from plimsoll.apply.cluster import ClusterIdentity
from plimsoll.apply.settings import PROJECT
from plimsoll.provider import encode

PROVIDER_NAME: Final = "cluster"
STACK_TYPE: Final = "pulumi:pulumi:Stack"
PROVIDER_TYPE: Final = "pulumi:providers:kubernetes"
CLUSTER_TYPE: Final = "plimsoll:index:Cluster"
"""A component that records the cluster in the state; it has no children."""


class Declared(NamedTuple):
    """One resource of the program."""

    token: str
    """Such as `kubernetes:apps/v1:Deployment`."""
    name: str
    """Logical name, stable over the life of the object."""
    inputs: Mapping[str, Any]


class Order(NamedTuple):
    """What a program is to declare. Whatever else the state holds is deleted by the engine."""

    first: tuple[Declared, ...]
    """New and changed resources: registered, and waited for, before the rest."""
    kept: tuple[Declared, ...]
    """Resources as they stand in the state."""


class CalledOffError(pulumi.RunError):
    """Ends a program that must not touch anything: after an error the engine deletes nothing."""

    def __init__(self) -> None:
        super().__init__("cancelled: nothing was changed")


class Program:
    """One run of the capacity program. `release` and `call_off` may come from any thread, before or after its start."""

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
        self._order: Future[Order] = Future()
        """Of threads: the first decision holds."""

    def release(self, order: Order) -> None:
        """Gives the program its order, unless it was called off before."""
        with contextlib.suppress(InvalidStateError):
            self._order.set_result(order)

    def call_off(self) -> None:
        """Ends the program unchanged, unless it was released before."""
        with contextlib.suppress(InvalidStateError):
            self._order.set_exception(CalledOffError())

    async def __call__(self) -> None:
        provider = pulumi.ProviderResource(
            "kubernetes", PROVIDER_NAME, self._provider_inputs, pulumi.ResourceOptions(version=self._version)
        )
        register = await Registration.of(provider)
        if refusal := await register.cluster(self._cluster):
            raise pulumi.RunError(refusal)
        self._on_ready()
        order = await asyncio.wrap_future(self._order)
        # The rest is registered afterwards: a hundred registrations ahead would cost the new objects a second. One that
        # is refused is no reason to leave the others out, but the program must fail then: else the engine would delete
        # what was not registered.
        refused = [*await register.all(order.first), *await register.all(order.kept)]
        if refused:
            raise pulumi.RunError(refused[0])


@dataclass(frozen=True)
class Registration:
    """Where resources of one program go: the engine's monitor, below its stack, by its provider.

    There is no object of the library for each: its own way takes several times as long for a resource, since it keeps
    an output for every field, and sends the engine a debug message for every step. Nobody reads outputs here.
    """

    monitor: Any
    parent: str
    provider: str

    @classmethod
    async def of(cls, provider: pulumi.ProviderResource) -> "Registration":
        """Within a running program, once its provider is registered."""
        root = get_root_resource()
        assert root is not None
        reference = f"{await provider.urn.future()}::{await provider.id.future()}"
        return cls(get_monitor(), str(await root.urn.future()), reference)

    async def all(self, resources: Iterable[Declared]) -> list[str]:
        """Returns when the engine is done with each: what it has not taken, and why.

        An operation that failed is none of these: the engine has taken the resource, and reports by itself.
        """
        answers = await asyncio.gather(*(self._answer(each.name, self._request(each)) for each in resources))
        return [answer for answer in answers if answer is not None]

    async def cluster(self, identity: ClusterIdentity) -> str | None:
        """Records the cluster. Why the engine has not taken it; None where it has."""
        request = resource_pb2.RegisterResourceRequest(
            type=CLUSTER_TYPE, name=PROVIDER_NAME, parent=self.parent, custom=False, object=encode(identity.record())
        )
        return await self._answer(PROVIDER_NAME, request)

    async def _answer(self, name: str, request: resource_pb2.RegisterResourceRequest) -> str | None:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[str | None] = loop.create_future()

        def tell(call: grpc.Future) -> None:
            refusal = None if call.code() is grpc.StatusCode.OK else f"{name}: {call.details()}"
            with contextlib.suppress(RuntimeError):  # the program has ended before
                loop.call_soon_threadsafe(_set, done, refusal)

        self.monitor.RegisterResource.future(request).add_done_callback(tell)
        return await done

    def _request(self, declared: Declared) -> resource_pb2.RegisterResourceRequest:
        return resource_pb2.RegisterResourceRequest(
            type=declared.token,
            name=declared.name,
            parent=self.parent,
            custom=True,
            object=encode(dict(declared.inputs)),
            provider=self.provider,
            acceptSecrets=True,
            acceptResources=True,
            supportsPartialValues=True,
            supportsResultReporting=True,
        )


def _set(done: "asyncio.Future[str | None]", refusal: str | None) -> None:
    if not done.done():
        done.set_result(refusal)


def urn_of(stack: str, declared: Declared) -> str:
    return _urn(stack, declared.token, declared.name)


def provider_urn(stack: str) -> str:
    return _urn(stack, PROVIDER_TYPE, PROVIDER_NAME)


def cluster_urn(stack: str) -> str:
    return _urn(stack, CLUSTER_TYPE, PROVIDER_NAME)


def stack_urn(stack: str) -> str:
    return _urn(stack, STACK_TYPE, f"{PROJECT}-{stack}")


def _urn(stack: str, token: str, name: str) -> str:
    return f"urn:pulumi:{stack}::{PROJECT}::{token}::{name}"

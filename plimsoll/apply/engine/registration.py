"""Registers resources with the engine, without an object of the library for each.

The library's own way takes several times as long for a resource: it keeps an output for every field, and sends the
engine a debug message for every step. A resource of the capacity stacks has no outputs that anybody reads.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import grpc
import pulumi
from pulumi.runtime import get_root_resource
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.settings import get_monitor

from plimsoll.provider.values import encode


class Declared(NamedTuple):
    """One resource of the program."""

    token: str
    """Such as `kubernetes:apps/v1:Deployment`."""
    name: str
    """Logical name, stable over the life of the object."""
    inputs: Mapping[str, Any]


@dataclass(frozen=True)
class Registration:
    """Where resources of one program go: the engine's monitor, below its stack, by its provider."""

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
        answers = await asyncio.gather(*map(self._answer, resources))
        return [answer for answer in answers if answer is not None]

    async def _answer(self, declared: Declared) -> str | None:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[str | None] = loop.create_future()

        def tell(call: grpc.Future) -> None:
            refusal = None if call.code() is grpc.StatusCode.OK else f"{declared.name}: {call.details()}"
            with contextlib.suppress(RuntimeError):  # the program has ended before
                loop.call_soon_threadsafe(_set, done, refusal)

        self.monitor.RegisterResource.future(self._request(declared)).add_done_callback(tell)
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

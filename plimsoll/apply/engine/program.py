"""The capacity program: blocks until a delta comes, registers what is new, then what stays."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import pulumi

from plimsoll.apply.engine.registration import Declared, Registration
from plimsoll.apply.settings import PROJECT

PROVIDER_NAME: Final = "cluster"
STACK_TYPE: Final = "pulumi:pulumi:Stack"
PROVIDER_TYPE: Final = "pulumi:providers:kubernetes"


class Order(NamedTuple):
    """What a program is to declare. Whatever else the state holds is deleted by the engine."""

    first: tuple[Declared, ...]
    """New and changed resources: registered, and waited for, before the rest."""
    kept: tuple[Declared, ...]
    """Resources as they stand in the state."""


class CalledOffError(pulumi.RunError):
    """Ends a program that must not touch anything: after an error the engine deletes nothing."""

    def __init__(self) -> None:
        super().__init__("called off: nothing was changed")


class Program:
    """One run of the capacity program. `release` and `call_off` may come from any thread, before or after its start."""

    def __init__(self, provider_inputs: Mapping[str, str], version: str, on_ready: Callable[[], None]) -> None:
        self._provider_inputs = dict(provider_inputs)
        self._version = version
        self._on_ready = on_ready
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._given: asyncio.Future[Order] | None = None
        self._decision: Order | CalledOffError | None = None

    def release(self, order: Order) -> bool:
        """Gives the program its order; False where it was called off before."""
        return self._decide(order)

    def call_off(self) -> bool:
        """Ends the program unchanged; False where it was released before."""
        return self._decide(CalledOffError())

    async def __call__(self) -> None:
        with self._lock:
            self._loop = asyncio.get_running_loop()
            self._given = self._loop.create_future()
            if self._decision is not None:
                _settle(self._given, self._decision)
        provider = pulumi.ProviderResource(
            "kubernetes", PROVIDER_NAME, self._provider_inputs, pulumi.ResourceOptions(version=self._version)
        )
        await provider.id.future()
        self._on_ready()
        order = await self._given
        register = await Registration.of(provider)
        # The rest is registered afterwards: a hundred registrations ahead would cost the new objects a second. One that
        # is refused is no reason to leave the others out, but the program must fail then: else the engine would delete
        # what was not registered.
        refused = [*await register.all(order.first), *await register.all(order.kept)]
        if refused:
            raise pulumi.RunError(refused[0])

    def _decide(self, decision: Order | CalledOffError) -> bool:
        with self._lock:
            if self._decision is not None:
                return isinstance(self._decision, Order) == isinstance(decision, Order)
            self._decision = decision
            if self._loop is not None and self._given is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(_settle, self._given, decision)
        return True


def _settle(given: "asyncio.Future[Order]", decision: Order | CalledOffError) -> None:
    if given.done():
        return
    if isinstance(decision, CalledOffError):
        given.set_exception(decision)
    else:
        given.set_result(decision)


def urn_of(stack: str, declared: Declared) -> str:
    return _urn(stack, declared.token, declared.name)


def provider_urn(stack: str) -> str:
    return _urn(stack, PROVIDER_TYPE, PROVIDER_NAME)


def stack_urn(stack: str) -> str:
    return _urn(stack, STACK_TYPE, f"{PROJECT}-{stack}")


def _urn(stack: str, token: str, name: str) -> str:
    return f"urn:pulumi:{stack}::{PROJECT}::{token}::{name}"

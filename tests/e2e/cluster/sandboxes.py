"""Sandboxes of a test run, which are removed at its end."""

import uuid
from collections.abc import Iterator

from plimsoll.sandbox import Sandbox

_up: list[Sandbox] = []


def up_sandbox(
    name: str, *, karpenter: bool, kai: bool = False, lws: bool = False, audit: bool = False
) -> Iterator[Sandbox]:
    """A separate sandbox, for tests whose objects would disturb other tests."""
    sandbox = Sandbox.named(f"{name}-{uuid.uuid4().hex[:6]}")
    sandbox.up(karpenter=karpenter, kai=kai, lws=lws, audit=audit, stop_with_caller=True)
    _up.append(sandbox)
    try:
        yield sandbox
    finally:
        sandbox.down()


def take_down_sandboxes() -> None:
    """Takes down all running sandboxes; the fixtures that started them then have nothing left to do."""
    while _up:
        _up.pop().down()

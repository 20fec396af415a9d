"""From when on new pods are changed: `pulumi up` ends only when what it declared holds for the next pod.

A pod cannot be changed afterwards, so one that a pipeline makes too early would lack its gate, or its GPUs' variable,
for good. Neither a MutatingAdmissionPolicy nor its binding has a status: what tells is a pod that is sent and not kept.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Any, Final

import orjson
import pulumi
import tenacity

from plimsoll.components import Mutation, MutationPolicy
from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection
from plimsoll.stacks.cluster import stack_cluster

SECONDS: Final = 30.0
"""Maximum wait for the effect."""
_POLL_SECONDS: Final = 0.2
_REFRESH_SECONDS: Final = 1.0
"""How often each apiserver reads its policies anew (k8s.io/apiserver): the others follow the one that answers."""


def await_effect(mutations: Iterable[Mutation]) -> None:
    """Waits until each policy is in effect. A policy whose effect cannot be checked is logged; it is not an error."""
    if pulumi.runtime.is_dry_run():
        return
    cluster = stack_cluster()
    for each in mutations:
        _await_one(each, cluster)


def _await_one(mutation: Mutation, cluster: Callable[[], Connection]) -> None:
    async def effect(_: str) -> None:
        await _warn(mutation.policy, cluster)

    mutation.binding.id.apply(effect)


async def _warn(policy: MutationPolicy, cluster: Callable[[], Connection]) -> None:
    what = f"{policy.adds} is added to new pods"
    try:
        if await asyncio.to_thread(_seen, policy, cluster):
            return
        pulumi.log.warn(
            f"{what}, but not yet after {SECONDS:.0f} s: pods that are created before then must be created again"
        )
    except PlimsollError as error:
        pulumi.log.info(f"cannot check whether {what}: {error}")


def _seen(policy: MutationPolicy, cluster: Callable[[], Connection]) -> bool:
    with closing(cluster()) as connection:
        return until_effective(connection, policy)


def until_effective(connection: Connection, policy: MutationPolicy, seconds: float = SECONDS) -> bool:
    """Whether the samples are changed within so many seconds. None is kept: these are dry runs.

    Raises RequestError where the cluster refuses a sample, ConnectionFailedError.
    """
    if _changes(connection, policy):
        return True
    looks = tenacity.Retrying(
        retry=tenacity.retry_if_result(lambda seen: not seen),
        wait=tenacity.wait_fixed(_POLL_SECONDS),
        stop=tenacity.stop_after_delay(seconds),
        retry_error_callback=lambda _: False,
    )
    seen = looks(_changes, connection, policy)
    if seen:
        time.sleep(_REFRESH_SECONDS)
    return seen


def _changes(connection: Connection, policy: MutationPolicy) -> bool:
    return all(policy.adds.encode() in orjson.dumps(_admitted(connection, sample)) for sample in policy.samples)


def _admitted(connection: Connection, pod: dict[str, Any]) -> dict[str, Any]:
    """The pod as the cluster would keep it."""
    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
    return connection.request("POST", path, pod, query={"dryRun": "All"})

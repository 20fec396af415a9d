"""Waits until MutatingAdmissionPolicies are in effect, so that `pulumi up` ends only when new pods are mutated.

A pod cannot be mutated after its creation, so a pod that a pipeline creates too early would never get its gate, or the
variable for its GPUs. Neither a MutatingAdmissionPolicy nor its binding has a status, so sample pods are sent as dry
runs.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import orjson
import pulumi

from plimsoll.components import Mutation, MutationPolicy
from plimsoll.errors import PlimsollError
from plimsoll.stacks.stack_connection import stack_cluster

if TYPE_CHECKING:
    from plimsoll.kube import Connection

SECONDS: Final = 30.0
"""Maximum wait for the effect."""
_POLL_SECONDS: Final = 0.2
_REFRESH_SECONDS: Final = 1.0
"""Interval in which each apiserver reads its policies (k8s.io/apiserver): others may be this much later."""


def await_effect(mutations: Iterable[Mutation]) -> None:
    """Waits until each policy is in effect. A policy whose effect cannot be checked is logged; it is not an error."""
    if pulumi.runtime.is_dry_run():
        return
    cluster = stack_cluster()
    for each in mutations:
        _await_one(each, cluster)


def _await_one(mutation: Mutation, cluster: "Callable[[], Connection]") -> None:
    async def effect(_: str) -> None:
        await _warn(mutation.policy, cluster)

    mutation.binding.id.apply(effect)


async def _warn(policy: MutationPolicy, cluster: "Callable[[], Connection]") -> None:
    what = f"{policy.adds} is added to new pods"
    try:
        if await asyncio.to_thread(_seen, policy, cluster):
            return
        pulumi.log.warn(
            f"{what}, but not yet after {SECONDS:.0f} s: pods that are created before then must be created again"
        )
    except PlimsollError as error:
        pulumi.log.info(f"cannot check whether {what}: {error}")


def _seen(policy: MutationPolicy, cluster: "Callable[[], Connection]") -> bool:
    with closing(cluster()) as connection:
        return until_effective(connection, policy)


def until_effective(connection: "Connection", policy: MutationPolicy, seconds: float = SECONDS) -> bool:
    """Whether the sample pods are mutated within this many seconds. None is stored: they are dry runs. Raises
    RequestError if the cluster refuses a sample, and ConnectionFailedError."""
    import tenacity

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


def _changes(connection: "Connection", policy: MutationPolicy) -> bool:
    return all(policy.adds.encode() in orjson.dumps(_admitted(connection, sample)) for sample in policy.samples)


def _admitted(connection: "Connection", pod: dict[str, Any]) -> dict[str, Any]:
    """The pod as the cluster would store it."""
    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
    return connection.request("POST", path, pod, query={"dryRun": "All"})

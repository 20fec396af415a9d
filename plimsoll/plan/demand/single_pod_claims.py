"""Claims that one pod may use at a time (ReadWriteOncePod): the scheduler places no other pod meanwhile."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from plimsoll.cluster.pods import node_of
from plimsoll.model.cluster import Pod
from plimsoll.plan.classes import Refusal, RefusalReason
from plimsoll.plan.demand.inputs import DemandInputs

Claim = tuple[str, str]
"""Namespace and name."""
_ADVICE: Final = "wait until that pod is gone, or use a claim of another access mode"


def single_pod_claims(inputs: DemandInputs) -> frozenset[Claim]:
    return frozenset(claim.key for claim in inputs.cluster.snapshot.volume_claims or () if claim.one_pod)


def waiting_for_claims(
    claims: Collection[Claim], inputs: DemandInputs, waiting: Mapping[str, Pod]
) -> tuple[Mapping[str, Refusal], frozenset[str]]:
    """Why pods have to wait for others that use these claims, by UID; and the UIDs of the waiting pods that others wait
    for. `waiting` are in the order in which the scheduler places them."""
    placed = (pod for pod in inputs.cluster.snapshot.pods if node_of(pod) and not pod.finished)
    users: dict[Claim, str] = {claim: f"Pod {pod.namespace}/{pod.name}" for pod in placed for claim in _of(pod, claims)}
    first: dict[Claim, tuple[str, str]] = {}
    refused, holders = dict[str, Refusal](), set[str]()
    for uid, pod in waiting.items():
        own = list(_of(pod, claims))
        taken = next((claim for claim in own if claim in users or claim in first), None)
        if taken is None:
            first |= dict.fromkeys(own, (uid, f"Pod {pod.namespace}/{pod.name}"))
        elif taken in users:
            refused[uid] = _refusal(taken, users[taken], "uses it")
        else:
            holders.add(first[taken][0])
            refused[uid] = _refusal(taken, first[taken][1], "gets it first")
    return refused, frozenset(holders)


def _of(pod: Pod, claims: Collection[Claim]) -> Iterator[Claim]:
    """Those of the claims that the pod uses."""
    for each in pod.volume_claims if pod.mounted else ():
        if (pod.namespace, each.name) in claims:
            yield pod.namespace, each.name


def _refusal(claim: Claim, other: str, how: str) -> Refusal:
    name = f" {claim[1]!r}"
    return Refusal(
        RefusalReason.NO_NODE,
        f"its PersistentVolumeClaim{name} is for one pod at a time (ReadWriteOncePod), and {other} {how}",
        _ADVICE,
        ((name, ""), (other, "another pod")),
    )

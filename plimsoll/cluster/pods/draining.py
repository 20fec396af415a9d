"""Which pods keep Karpenter from draining the nodes of NodeClaims that are being deleted."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from plimsoll.cluster.pods.indexed import bound_pods
from plimsoll.labels import DO_NOT_DISRUPT
from plimsoll.model.cluster import Pod, PodDisruptionBudget
from plimsoll.model.karpenter import NodeClaim
from plimsoll.model.meta import Taint
from plimsoll.text import shortlist

_DISRUPTED: Final = (Taint(key="karpenter.sh/disrupted", effect="NoSchedule"),)


def with_blocking_pods(
    claims: tuple[NodeClaim, ...], pods: tuple[Pod, ...], budgets: Iterable[PodDisruptionBudget]
) -> tuple[NodeClaim, ...]:
    """The NodeClaims; those that are being deleted with the pods for which the drain waits, and what holds these back.

    Karpenter waits for each pod but those that tolerate its taint, have finished, or are of the node itself
    (`IsDrainable` in pkg/utils/pod/scheduling.go of kubernetes-sigs/karpenter).
    """
    by_node = bound_pods(pods)
    of_namespace: dict[str, list[PodDisruptionBudget]] = {}
    for budget in budgets:
        of_namespace.setdefault(budget.namespace, []).append(budget)
    return tuple(
        each.model_copy(update={"blocking": tuple(_blocking(by_node.get(each.node_name, ()), of_namespace))})
        if each.deleting and each.node_name
        else each
        for each in claims
    )


def _blocking(pods: Iterable[Pod], budgets: Mapping[str, list[PodDisruptionBudget]]) -> Iterator[str]:
    for pod in sorted(pods, key=lambda pod: pod.key):
        if pod.finished or pod.owner_kind == "Node" or not pod.placement.untolerated_taints(_DISRUPTED):
            continue
        why = _held_back(pod, budgets.get(pod.namespace, ()))
        yield f"pod {pod.namespace}/{pod.name}" + (f" ({why})" if why else "")


def _held_back(pod: Pod, budgets: Iterable[PodDisruptionBudget]) -> str:
    """Why the pod is not evicted; empty if nothing is known to hold it back."""
    if pod.deleting:
        return f"being deleted since {pod.deletion_timestamp}"
    if pod.annotations.get(DO_NOT_DISRUPT) == "true":
        return f"annotation {DO_NOT_DISRUPT}"
    if pod.phase == "Pending":
        return ""  # it is evicted whatever budgets say
    its = sorted((each for each in budgets if _counts(each, pod)), key=lambda each: each.name)
    names = shortlist([f"{each.namespace}/{each.name}" for each in its])
    if len(its) > 1:
        return f"PodDisruptionBudgets {names}: a pod with several is never evicted"
    return f"PodDisruptionBudget {names} allows no disruption" if its and its[0].allowed == 0 else ""


def _counts(budget: PodDisruptionBudget, pod: Pod) -> bool:
    if budget.evicts_unhealthy == "AlwaysAllow" and not pod.ready:
        return False
    return budget.selector is not None and budget.selector.matches(pod.labels)

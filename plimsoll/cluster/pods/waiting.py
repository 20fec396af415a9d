"""Which pods wait for capacity, by their conditions, scheduling gates and schedulers."""

from collections import Counter
from collections.abc import Iterable

from plimsoll.cluster.pods.gate import gated, recently_ungated
from plimsoll.cluster.pods.group_labels import selected_node
from plimsoll.labels import WORKSPACE
from plimsoll.model.api import CAPACITY_GATE, KAI_NAMESPACES, DemandSettings
from plimsoll.model.cluster import Pod
from plimsoll.text import counted


def waits(pod: Pod, settings: DemandSettings) -> bool:
    """Whether the pod needs capacity from us: a scheduler found no node for it, or the capacity gate holds it or held
    it until just now, so that no scheduler has handled it.

    Pods that do not count: those that are finished or being deleted, those for which a scheduler preempts others, those
    that are being bound (their GPUs count as allocated), those of other schedulers, pods of Workspaces, and pods that
    request capacity.
    """
    return (
        (pod.unschedulable or gated(pod) or recently_ungated(pod))
        and not pod.deleting
        and not pod.finished
        and not pod.nominated_node_name
        and not selected_node(pod)
        and pod.scheduler_name in settings.schedulers
        and not is_ours(pod, settings)
    )


def is_ours(pod: Pod, settings: DemandSettings) -> bool:
    """Whether the pod belongs to a Workspace, or requests capacity for Plimsoll or for KAI's node-scale-adjuster."""
    return WORKSPACE in pod.labels or pod.namespace == settings.namespace or pod.namespace in KAI_NAMESPACES


def passed_over_warnings(pods: Iterable[Pod], settings: DemandSettings) -> tuple[str, ...]:
    """Pods without a node that request devices and are not planned for: those of other schedulers, and those that
    scheduling gates of others hold, such as Kueue's."""
    schedulers, gates = Counter[str](), Counter[str]()
    for pod in pods:
        if pod.node_name or pod.finished or pod.deleting or selected_node(pod) or is_ours(pod, settings):
            continue
        if pod.scheduler_name not in settings.schedulers:
            schedulers[pod.scheduler_name] += 1
        else:
            gates.update(gate for gate in pod.scheduling_gates if gate != CAPACITY_GATE)
    return (
        *(
            f"{counted(number, 'pod')} of scheduler {name} not counted: spec.demand.schedulers of the Environment does "
            "not list it"
            for name, number in sorted(schedulers.items())
        ),
        *(
            f"{counted(number, 'pod')} with scheduling gate {name} not counted as long as they have it"
            for name, number in sorted(gates.items())
        ),
    )

"""The whole GPUs that pods ask for. Nothing is planned for them: autoscalers provide their nodes."""

from dataclasses import dataclass

from plimsoll.cluster.pods import is_ours, read_request
from plimsoll.model import Snapshot
from plimsoll.plan.classes.members import Classes
from plimsoll.text import counted


@dataclass(frozen=True, slots=True)
class WholeGpus:
    running: int = 0
    """GPUs of pods that have a node."""
    waiting: int = 0
    """GPUs of pods that wait for one."""
    waiting_pods: int = 0

    @property
    def asked(self) -> int:
        return self.running + self.waiting

    @property
    def note(self) -> str:
        """Who serves the pods that wait; empty if none waits."""
        if not self.waiting_pods:
            return ""
        return (
            f"{counted(self.waiting_pods, 'pod')} with {counted(self.waiting, 'whole GPU')}: not planned, the "
            "autoscaler provides their nodes, unless their scheduler finds free GPUs; `plimsoll demand` lists them"
        )


def whole_gpus(snapshot: Snapshot) -> WholeGpus:
    """Of all pods but those of Workspaces and those that request or reserve capacity."""
    spec = snapshot.environment.spec
    running = 0
    for pod in snapshot.pods:
        if pod.node_name and not (pod.finished or pod.deleting or is_ours(pod, spec.demand)):
            held = read_request(pod, spec.gpu_resource).held
            running += held.devices if held is not None and held.whole else 0
    of_namespaces = Classes().update(snapshot, None).values()
    waiting = [each for named in of_namespaces for members in named.classes.values() for each in members.whole.values()]
    return WholeGpus(running, sum(each.share.devices for each in waiting), len(waiting))

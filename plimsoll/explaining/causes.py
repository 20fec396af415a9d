"""The causes of missing nodes, by the reason that names them: what it means, and what to do. The page "No node comes"
of the documentation is made from them. Reasons of packages that this one cannot import are in it by their values."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from plimsoll.cluster.profiles import DiscrepancyReason
from plimsoll.explaining.chain import StepReason
from plimsoll.model import Reason
from plimsoll.model.api import ClaimStage, DemandPhase
from plimsoll.plan.classes import RefusalReason


class Cause(NamedTuple):
    means: str
    do: str


PODS: Final[dict[RefusalReason, Cause]] = {
    RefusalReason.UNREADABLE: Cause(
        "the pod's request for GPUs cannot be read, or is for parts of GPUs that are not declared",
        "correct the annotation or resource that the message names",
    ),
    RefusalReason.CLAIM: Cause(
        "a claim, template or DeviceClass that the pod names does not exist, no devices meet its claims, or what they "
        "ask for is not planned for",
        "create what the message names, change the claim, its template or DeviceClass, or declare the devices in a "
        "NodeProfile",
    ),
    RefusalReason.TOO_LARGE: Cause(
        "no kind of GPU that could serve the pod has as much memory, or the model, that it asks for",
        "ask for less, or let a NodePool offer a type with larger GPUs",
    ),
    RefusalReason.NO_NODE: Cause(
        "no node, there or offered by a NodePool, meets the pod's selector, affinity, tolerations and size",
        "change the condition that the message names, or declare a NodePool that meets it",
    ),
    RefusalReason.BLOCKED: Cause(
        "every instance type that could serve the pod failed to launch lately and is skipped for `demand.retrySeconds`",
        "wait, or let a NodePool offer another type, zone or capacity type",
    ),
    RefusalReason.SURPLUS: Cause(
        "only a node with more GPUs than `demand.surplusGpus` allows is left, because smaller types failed to launch",
        "raise `demand.surplusGpus`, or wait",
    ),
    RefusalReason.LIMIT: Cause(
        "a limit of a NodePool or of the Environment leaves no room",
        "raise the limit that the message names",
    ),
    RefusalReason.NOT_ALLOWED: Cause(
        "`access` of the Environment, a ResourceQuota or the pod's scheduler does not allow it",
        "change `access` or the quota, or name a queue and its scheduler",
    ),
    RefusalReason.QUEUE: Cause(
        "the pod's Queue would not admit it",
        "raise the limit or quota of the Queue that the message names, use another queue, or a priority below 100",
    ),
    RefusalReason.GANG: Cause(
        "the pods of its gang start together, and one of them has no place",
        "mend what keeps that pod back; the message repeats its reason",
    ),
}
WORKSPACES: Final[dict[Reason, Cause]] = {
    Reason.INTERNAL_ERROR: Cause(
        "a fault of Plimsoll, while this Workspace was validated; what it has stays, and others are not affected",
        "report it, with the manifest",
    ),
    Reason.INVALID_SPEC: Cause(
        "fields of the Workspace contradict each other or the Environment, or the apiserver would refuse its workload",
        "correct the field",
    ),
    Reason.INSTANCE_TYPE_FORBIDDEN: Cause(
        "existing nodes serve Workspaces here, and `resource.instanceType` is set",
        "remove it, or set `byoInstanceType: narrow`",
    ),
    Reason.INSTANCE_TYPE_REQUIRED: Cause(
        "nodes are provisioned here, and `resource.instanceType` is not set", "set one of the types that are proposed"
    ),
    Reason.UNSUPPORTED_INSTANCE_TYPE: Cause(
        "no NodePool, node or catalog entry has the instance type, or its GPUs cannot be used",
        "correct the name, or let a NodePool offer it",
    ),
    Reason.SELECTOR_RESERVED: Cause("the selector uses labels that are reserved", "remove them"),
    Reason.UNKNOWN_PRESET: Cause(
        "no model of that name is known", "correct the name, declare the preset, or set `modelHub`"
    ),
    Reason.NOT_SUPPORTED: Cause("Plimsoll does not implement it", "remove the field"),
    Reason.NO_MATCHING_NODES: Cause("the selector matches no node", "correct the selector, or label nodes"),
    Reason.NO_USABLE_NODES: Cause(
        "nodes match, and none can be used: cordoned, not Ready, tainted, or without allocatable GPUs",
        "mend the nodes that the message names",
    ),
    Reason.NO_FREE_NODES: Cause("other Workspaces or pods use the nodes that match", "wait, or add nodes"),
    Reason.GPU_LABELS_INVALID: Cause(
        "labels of GPU Feature Discovery cannot be read", "run GPU Feature Discovery again"
    ),
    Reason.NON_UNIFORM_NODES: Cause(
        "the nodes that match have different GPUs", "narrow the selector to one kind of GPU"
    ),
    Reason.INSUFFICIENT_GPU_MEMORY: Cause(
        "one replica needs more GPU memory than a node has",
        "use nodes with more memory, more nodes for a replica, or a shorter context",
    ),
    Reason.NOT_ALLOWED: Cause(
        "`access` of the Environment, or a quota, right or webhook of the cluster, does not allow it",
        "change what the message names, or the Workspace",
    ),
    Reason.LIMIT_EXCEEDED: Cause(
        "a limit of the Environment, or a ResourceQuota, leaves no room", "raise the limit that the message names"
    ),
}
DEMANDS: Final[dict[DemandPhase, Cause]] = {
    DemandPhase.PENDING: Cause("no capacity has been requested yet", "see the reasons in the status"),
    DemandPhase.QUOTA_BLOCKED: Cause("the Queue admits none of the pods", "see reason `Queue`"),
    DemandPhase.SCHEDULED: Cause(
        "capacity is requested, and no autoscaler has answered",
        "see whether Karpenter or the autoscaler runs and watches the namespace of the requests",
    ),
    DemandPhase.REFUSED: Cause(
        "the autoscaler, or its cloud, refuses the request and tries again by itself",
        "read its words in the status: mostly a quota of the cloud, a NodeClass, or a NodePool's limit",
    ),
    DemandPhase.LAUNCHING: Cause("nodes are announced, and their instances are not launched", "wait"),
    DemandPhase.REGISTERING: Cause(
        "instances run, and no node has joined", "if it lasts, read the log of the kubelet, and the node's role"
    ),
    DemandPhase.INITIALIZING: Cause(
        "nodes have joined, and their GPUs are not allocatable",
        "see whether driver, device plugin and GPU Feature Discovery run on them",
    ),
    DemandPhase.NODE_READY: Cause(
        "GPUs are there, and the pods are not bound", "see what their scheduler says in the pods' events"
    ),
    DemandPhase.EXPIRED: Cause(
        "nodes did not come within `demand.deadlineSeconds`, and are requested again", "see `status.blocked`"
    ),
    DemandPhase.FAILED: Cause(
        "requests failed `demand.retries` times; none is made for `demand.pauseSeconds`",
        "mend what `status.reasons` names, or wait",
    ),
}
CLAIMS: Final[dict[ClaimStage, Cause]] = {
    ClaimStage.CREATED: Cause("Karpenter has not handled the NodeClaim", "see whether Karpenter runs"),
    ClaimStage.LAUNCHING: Cause("the cloud has launched no instance yet", "wait; its refusals are in the message"),
    ClaimStage.REGISTERING: DEMANDS[DemandPhase.REGISTERING],
    ClaimStage.INITIALIZING: DEMANDS[DemandPhase.INITIALIZING],
    ClaimStage.FAILED: Cause("the NodeClaim was given up", "its message says why; another type is tried"),
}
STEPS: Final[dict[StepReason, Cause]] = {
    StepReason.NO_PROVISIONER: Cause(
        "`demand.provisioner` of the Environment is `none`: demand is reported, and nothing is requested",
        "set `demand.provisioner: trigger-pod`",
    ),
    StepReason.NODE_UNUSABLE: Cause(
        "the node is cordoned, not Ready, unhealthy or being deleted", "mend or replace it"
    ),
    StepReason.NODE_GONE: Cause("the pod is bound to a node that does not exist", "delete the pod"),
    StepReason.GATED: Cause("scheduling gates of others hold the pod", "see who removes them"),
    StepReason.PREEMPTING: Cause("the scheduler removes other pods for this one", "wait"),
    StepReason.NOT_YET_UNSCHEDULABLE: Cause(
        "no scheduler has said that the pod fits nowhere, so it does not count",
        "see whether its scheduler (`spec.schedulerName`) runs",
    ),
    StepReason.WHOLE_GPUS: Cause(
        "the pod requests whole GPUs, for which Karpenter or the autoscaler creates nodes by itself",
        "read the pod's events of Karpenter or the autoscaler",
    ),
    StepReason.GRACE: Cause("no node is requested in the first `demand.graceSeconds`", "wait"),
    StepReason.WITHHELD: Cause("a policy rule withholds an object", "mend what the rule names, or exempt it"),
    StepReason.LIMITED: Cause("a limit leaves no room for all of its nodes", "raise the limit that the message names"),
    StepReason.NOT_REQUESTED_YET: Cause(
        "nodes are planned, and the controller has not requested them", "see whether the controller runs"
    ),
    StepReason.CLAIM_REFUSED: Cause(
        "Karpenter or the cloud refuses the NodeClaim", "its message says why: quota, capacity, NodeClass"
    ),
    StepReason.CLAIM_WAITS: Cause("the NodeClaim is on its way", "wait; it is replaced at its deadline"),
    StepReason.ATTEMPT_FAILED: Cause(
        "NodeClaims of the Workspace failed; the pause before the next one doubles", "mend what the message names"
    ),
    StepReason.WORKLOAD_NOT_READY: Cause("nodes are there, and pods are not ready", "read the pods' events and logs"),
    StepReason.SEVERAL_WAIT: Cause("pods wait, and nothing blocks them", "wait"),
    StepReason.DELETING: Cause(
        "the Workspace is being deleted, and objects or finalizers are left",
        "wait; mend what keeps an object that the message names, or the controller whose finalizer it names",
    ),
}
CONDITIONS: Final[dict[str, Cause]] = {
    "Refused": Cause("the Workspace is refused", "see the reason of its condition `ResourceReady`"),
    "NodeClaimsPending": Cause(
        "NodeClaims are not created yet, or earlier ones are still being deleted",
        "wait; remove what keeps a NodeClaim that the message names",
    ),
    "NodeClaimNotLaunched": CLAIMS[ClaimStage.LAUNCHING],
    "NodeClaimNotRegistered": CLAIMS[ClaimStage.REGISTERING],
    "NodeClaimNotInitialized": CLAIMS[ClaimStage.INITIALIZING],
    "NodeClaimNotReady": Cause("nodes are initialized, and Karpenter does not count them as Ready", "mend the nodes"),
    "NodeClaimLate": Cause(
        "a NodeClaim missed its deadline and is replaced",
        "read its conditions; raise the deadline in `nodeClaims` of the Environment if nodes need longer",
    ),
    "NodeClaimLost": Cause(
        "a NodeClaim was deleted, and not by Plimsoll; it is requested again", "see who deleted it: Karpenter's log"
    ),
    "InsufficientCapacity": Cause(
        "the cloud has no instance of this type now; it is tried again after a pause",
        "name further types, zones or capacity types, or reserve capacity",
    ),
    "SpotInterrupted": Cause(
        "the cloud takes spot nodes back, and others are requested", "wait, or use `on-demand` capacity"
    ),
    "NodesNotReady": Cause("fewer nodes are Ready than the Workspace needs", "mend the nodes that the message names"),
    "WorkloadPending": Cause("the workload is created when its nodes are there", "see the other conditions"),
    "WorkloadNotReady": STEPS[StepReason.WORKLOAD_NOT_READY],
    "Deleting": STEPS[StepReason.DELETING],
}
POD_CONDITIONS: Final[dict[str, Cause]] = {
    "Unschedulable": Cause("no node fits the pod; it counts as demand", "see what `plimsoll why pod` says"),
    "SchedulerError": Cause("`plimsoll bind` does not support what the pod requests", "change what the message names"),
    "ReservingGPU": Cause("the pod has a place, and its GPU is being reserved", "wait"),
    "CapacityReady": Cause("a trigger pod's node is there; no further one is created for it", "nothing to do"),
    "Withdrawn": Cause("no pod needs a trigger pod's node any more", "nothing to do"),
}
EVENTS: Final[dict[str, Cause]] = {
    "CapacityRequested": Cause("nodes for the pod are requested", "wait; `plimsoll why pod` says what they wait for"),
    "CapacityRefused": Cause("the autoscaler refuses the request for the pod's nodes", "see phase `Refused`"),
    "KeptOutByQueue": Cause("the pod's Queue would not admit it", "see reason `Queue`"),
    "CapacityNotRequested": Cause("no node is requested for the pod", "see what `plimsoll why pod` says"),
    "FitsNoInstanceType": Cause("no instance type of a NodePool fits the pod", "see reason `NoNode`"),
    "Refused": Cause("the Workspace is refused", "see the reason in the note, under Workspaces"),
    "CapacityCreateFailed": Cause(
        "the cluster refused a NodeClaim, workload or request; it is tried again", "mend what the note names"
    ),
    "CapacityUpdateFailed": Cause("the cluster refused a change; it is tried again", "mend what the note names"),
    "CapacityDeleteFailed": Cause("the cluster refused a deletion; it is tried again", "mend what the note names"),
    "PolicyViolation": STEPS[StepReason.WITHHELD],
    **{f"Demand{phase}": Cause(f"the GPUDemand is in phase `{phase}`", cause.do) for phase, cause in DEMANDS.items()},
    **{
        reason: Cause("as the condition `NodeClaimsReady` of the Workspace", CONDITIONS[reason].do)
        for reason in ("NodeClaimLate", "NodeClaimLost", "InsufficientCapacity", "SpotInterrupted")
    },
}
NODES: Final[dict[DiscrepancyReason, Cause]] = {
    DiscrepancyReason.SEVERAL_RESERVATIONS: Cause(
        "several reservation pods hold a GPU for one group, and pods run on one of them",
        "delete the reservation pods that hold other GPUs",
    ),
    DiscrepancyReason.SHARED_GPU: Cause(
        "reservations of several groups hold one GPU", "restart the pods of all but one of these groups"
    ),
    DiscrepancyReason.NO_RESERVATION: Cause(
        "shares run on a GPU that no reservation pod holds, so others may be placed on it", "restart these pods"
    ),
    DiscrepancyReason.NO_GROUP: Cause(
        "a pod with a share was placed by nobody, and counts for nothing", "restart it with KAI or `plimsoll bind`"
    ),
    DiscrepancyReason.OVERBOOKED: Cause("the shares of a group exceed its GPU", "restart one of its pods"),
    DiscrepancyReason.TOO_MANY_GPUS: Cause(
        "pods use more GPUs than the node has", "see whether GPUs of it failed, and restart pods"
    ),
    DiscrepancyReason.UNREADABLE_SHARE: Cause(
        "a pod on the node requests GPUs in a way that cannot be read", "correct its annotation or resource"
    ),
    DiscrepancyReason.WRONG_GROUPS: Cause(
        "a pod is in more or fewer groups than the GPUs that it requests", "restart the pod"
    ),
    DiscrepancyReason.UNREADABLE_NODE: Cause(
        "the node reports a quantity of GPUs that cannot be read", "mend its device plugin"
    ),
    DiscrepancyReason.NOT_SHAREABLE: Cause(
        "shares run on a node with time-slicing, MPS or MIG", "keep these pods, or the sharing, off the node"
    ),
    DiscrepancyReason.MORE_ALLOCATABLE: Cause(
        "more devices are allocatable than labels say; the labels count", "run GPU Feature Discovery again"
    ),
    DiscrepancyReason.FEWER_ALLOCATABLE: Cause(
        "fewer devices are allocatable than labels say, and these count",
        "see whether GPUs failed, and read the log of the device plugin",
    ),
    DiscrepancyReason.INVALID_LABEL: Cause(
        "a label on GPUs is missing or invalid beside others", "run GPU Feature Discovery again, or update it"
    ),
    DiscrepancyReason.UNLABELLED_SLICES: Cause(
        "MIG slices are allocatable that no label describes", "run GPU Feature Discovery with the strategy `mixed`"
    ),
    DiscrepancyReason.REPLICAS_CONTRADICT: Cause(
        "the product's name says that GPUs are shared, and the number of replicas that they are not",
        "run GPU Feature Discovery again",
    ),
    DiscrepancyReason.ANNOUNCED_TWICE: Cause(
        "a device plugin and a DRA driver announce the GPUs; those of the plugin count",
        "run one of the two on the node",
    ),
    DiscrepancyReason.MIG_CHANGING: Cause(
        "the MIG configuration is not applied yet, or failed", "read the log of the MIG manager"
    ),
}


class _Table(NamedTuple):
    title: str
    symptom: str
    command: str
    causes: Mapping[Any, Cause]
    """By reason."""


_TABLES: Final = (
    _Table("Pods", "a pod stays `Pending`", "plimsoll why pod NAMESPACE/NAME", PODS),
    _Table("Demands", "a GPUDemand stays in a phase", "plimsoll why demand NAME", DEMANDS),
    _Table("NodeClaims", "a NodeClaim does not become Ready", "plimsoll why node NAME", CLAIMS),
    _Table(
        "Workspaces",
        "a Workspace is refused: `ResourceReady` is False",
        "plimsoll why workspace NAMESPACE/NAME",
        WORKSPACES,
    ),
    _Table("Any step", "nothing in a namespace has GPUs", "plimsoll why namespace NAME", STEPS),
    _Table(
        "Conditions of Workspaces",
        "a Workspace is accepted, and has no nodes or no server",
        "kubectl describe workspace NAME",
        CONDITIONS,
    ),
    _Table(
        "Conditions of pods",
        "the condition `PodScheduled` of a pod is False",
        "kubectl describe pod NAME",
        POD_CONDITIONS,
    ),
    _Table("Events", "an event of Plimsoll", "kubectl get events --all-namespaces", EVENTS),
    _Table("Nodes", "a node is there, and its GPUs are not used", "plimsoll gpus", NODES),
)


def no_node_comes() -> str:
    """The page of the documentation."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# No node comes"
    yield ""
    yield (
        "This page is for operators, and for whoever waits for a GPU. [`plimsoll why`](why.md) names the step that is "
        "blocked, its reason, and changes that a plan has proven to help. Each reason has a row here. The page is made "
        "from the table in [causes.py](../../plimsoll/explaining/causes.py)."
    )
    yield from ("", "## Summary", "", "| Symptom | Command | Reasons |", "|---|---|---|")
    for table in _TABLES:
        anchor = table.title.lower().replace(" ", "-")
        yield f"| {table.symptom} | `{table.command}` | [{table.title}](#{anchor}) |"
    for table in _TABLES:
        yield from ("", f"## {table.title}", "", f"See the reason: `{table.command}`", "")
        yield from ("| Reason | Meaning | Remedy |", "|---|---|---|")
        for reason, cause in table.causes.items():
            yield f"| `{reason}` | {cause.means} | {cause.do} |"

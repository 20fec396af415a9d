"""Workspaces on nodes that people bring (BYO): the selector's nodes, judged by their live GFD labels.

The algorithm is that of KAITO's cloud provider agnostic scheduling: at least one node matches, product, count and
memory are the same on all of them, and a model that cannot span nodes fits one. Messages keep KAITO's known phrases.
"""

from typing import NamedTuple

from plimsoll.model.environment import EnvironmentSpec
from plimsoll.model.label_selector import LabelSelector
from plimsoll.model.labels import GPU_MEMORY, NODEPOOL
from plimsoll.model.mode import instance_type_violation
from plimsoll.model.node import Node
from plimsoll.model.verdict import Reason
from plimsoll.model.workspace import Workspace
from plimsoll.plan.estimator import NodeGpus
from plimsoll.plan.gpu_labels import GpuLabels, InvalidGpuLabel
from plimsoll.plan.node_index import NodeIndex, gpu_devices
from plimsoll.plan.node_refusals import invalid_labels, none_matches, not_uniform
from plimsoll.plan.refusal import Refusal
from plimsoll.plan.shortlist import counted, shortlist
from plimsoll.plan.sizing import Sizing, nodes_in_all, nodes_per_replica, replica_need
from plimsoll.plan.tolerations import Tolerance, Tolerances


class Survey(NamedTuple):
    """What a selector finds."""

    gpus: GpuLabels
    """The same on every node."""
    devices: int
    """Devices that a pod asks for to have a whole node."""
    matching: tuple[str, ...]
    """Nodes with labels, usable or not, sorted."""
    usable: tuple[str, ...]
    warnings: tuple[str, ...]


class BroughtNodes:
    """Judges Workspaces against the nodes of one snapshot; what a selector finds is found once."""

    def __init__(self, index: NodeIndex, environment: EnvironmentSpec) -> None:
        self._index = index
        self._environment = environment
        self._surveys: dict[tuple[str, str], Survey | Refusal] = {}
        self._tolerances = Tolerances(environment)

    def judge(self, workspace: Workspace) -> Sizing | Refusal:
        """How many nodes the Workspace takes of those it matches, or why it may not."""
        resource = workspace.spec.resource
        forbidden = instance_type_violation(resource.instance_type, auto_provisioning=False)
        if forbidden:
            return Refusal(Reason.INSTANCE_TYPE_FORBIDDEN, forbidden)
        if resource.label_selector.empty:
            return Refusal(
                Reason.SELECTOR_EMPTY,
                "resource.labelSelector is empty and would match every node: name the nodes by matchLabels or "
                "matchExpressions",
            )
        survey = self._found(resource.label_selector, self._tolerances.of(workspace))
        if isinstance(survey, Refusal):
            return survey
        pools = self._foreign_pools(workspace.namespace, survey.usable)
        return pools or _size(workspace, survey)

    def _found(self, selector: LabelSelector, tolerance: Tolerance) -> Survey | Refusal:
        """What the selector finds for pods that tolerate so much, or what is wrong with these nodes."""
        key = (str(selector), tolerance.key)
        found = self._surveys.get(key)
        if found is None:
            found = self._surveys[key] = self._survey(selector, key[0], tolerance)
        return found

    def _survey(self, selector: LabelSelector, text: str, tolerance: Tolerance) -> Survey | Refusal:
        matching = self._index.matching(selector)
        nodes = [node for node in matching if not node.deleting]
        if not nodes:
            return none_matches(text, len(self._index.nodes), [node.name for node in matching])
        groups: dict[GpuLabels, list[Node]] = {}
        usable: list[Node] = []
        unusable: list[str] = []
        left_out: list[str] = []
        invalid: list[tuple[Node, InvalidGpuLabel]] = []
        for node in nodes:
            gpus = self._index.gpus(node)
            problem = self._unusable(node, tolerance)
            if problem:
                unusable.append(f"{node.name} ({problem})")
            else:
                usable.append(node)
            if isinstance(gpus, GpuLabels):
                groups.setdefault(gpus, []).append(node)
            elif problem:
                left_out.append(f"{node.name} ({problem}; {gpus})")
            else:
                invalid.append((node, gpus))
        if invalid:
            return invalid_labels(invalid)
        if len({gpus.uniformity for gpus in groups}) > 1:
            return not_uniform(text, groups)
        if not usable:
            return Refusal(
                Reason.NO_USABLE_NODES,
                f"None of the {counted(len(nodes), 'node')} that labelSelector {text!r} matches can be used: "
                f"{shortlist(unusable)}; make one Ready and schedulable, or tolerate its taints",
            )
        return self._uniform(groups, usable, unusable, left_out)

    def _uniform(
        self, groups: dict[GpuLabels, list[Node]], usable: list[Node], unusable: list[str], left_out: list[str]
    ) -> Survey:
        gpus = next(iter(groups))
        devices = min(each.devices for each in groups)
        warnings = []
        if left_out:
            warnings.append(f"left out, neither usable nor labelled: {shortlist(left_out)}")
        elif unusable:
            warnings.append(f"not usable at present: {shortlist(unusable)}")
        in_bytes = next((nodes for each, nodes in groups.items() if each.in_bytes), None)
        if in_bytes:
            warnings.append(
                f"{GPU_MEMORY} on {shortlist([node.name for node in in_bytes])} is in bytes, as old releases of GPU "
                f"Feature Discovery wrote it: read as {gpus.memory_mib} MiB; update it"
            )
        short = self._short_of_devices(usable, devices)
        if short:
            warnings.append(f"fewer devices than {devices} are allocatable: {shortlist(short)}")
        return Survey(
            gpus=gpus,
            devices=devices,
            matching=tuple(sorted(node.name for nodes in groups.values() for node in nodes)),
            usable=tuple(node.name for node in usable),
            warnings=tuple(warnings),
        )

    def _short_of_devices(self, nodes: list[Node], devices: int) -> list[str]:
        resource = self._environment.gpu_resource
        return [
            f"{node.name} ({amount} {resource})"
            for node in nodes
            if (amount := gpu_devices(node, resource)) is not None and amount < devices
        ]

    def _unusable(self, node: Node, tolerance: Tolerance) -> str:
        """Why nothing may be placed on the node now; empty where it may."""
        if node.ready is False:
            return "not Ready"
        if node.unschedulable:
            return "cordoned"
        taints = tolerance.kept_away(node)
        if taints:
            return f"tainted {' '.join(taints)}"
        if gpu_devices(node, self._environment.gpu_resource) == 0:
            return f"0 {self._environment.gpu_resource} allocatable"
        return ""

    def _foreign_pools(self, namespace: str, names: tuple[str, ...]) -> Refusal | None:
        access = self._environment.access_of(namespace)
        if access is None or access.node_pools is None:
            return None
        foreign = [
            f"{name} (NodePool {pool})"
            for name in names
            if (pool := self._index.by_name[name].labels.get(NODEPOOL)) and pool not in access.node_pools
        ]
        if not foreign:
            return None
        return Refusal(
            Reason.NOT_ALLOWED,
            f"namespace {namespace!r} may use the NodePools {shortlist(access.node_pools) or '(none)'} only, and the "
            f"selector matches {shortlist(foreign)}: narrow resource.labelSelector",
        )


def _size(workspace: Workspace, survey: Survey) -> Sizing | Refusal:
    need = replica_need(workspace)
    if isinstance(need, Refusal):
        return need
    gpus = survey.gpus
    each = f"{gpus.count} x {gpus.product} of {gpus.memory_mib} MiB each"
    there = len(survey.matching)
    found = f"{counted(there, 'matching node')}, {len(survey.usable)} usable, {each}"
    warnings = survey.warnings
    per_replica = 1
    if need is not None:
        per_node = NodeGpus(gpus.count, gpus.memory_mib, gpus.product)
        sized = nodes_per_replica(need, per_node, f"node {survey.matching[0]}")
        if isinstance(sized, Refusal):
            return sized
        per_replica, warning = sized
        warnings = (*warnings, warning) if warning else warnings
        total = there * gpus.node_memory_mib
        if total < need.least_mib or (need.per_replica is None and per_replica > there):
            return Refusal(
                Reason.INSUFFICIENT_GPU_MEMORY,
                f"Insufficient total GPU memory: {counted(there, 'matching node')} "
                f"({shortlist(survey.matching)}) has a total of {total} MiB ({there} x {each}), but {need.subject} "
                f"requires at least {need.least_mib} MiB, {counted(per_replica, 'such node')} for one replica; "
                "label more nodes, or take larger ones",
            )
    target, deprecated = nodes_in_all(workspace, per_replica)
    if target > len(survey.usable):
        warnings = (*warnings, f"{target} nodes are wanted and {len(survey.usable)} usable: pods may stay Pending")
    return Sizing(
        per_replica=per_replica,
        target=target,
        message=f"{found}; one replica takes {counted(per_replica, 'node')}",
        node_names=survey.usable,
        devices=survey.devices,
        gpus=survey.gpus.count,
        warnings=(*warnings, *deprecated),
    )

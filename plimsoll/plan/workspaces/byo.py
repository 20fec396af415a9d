"""Workspaces on existing nodes (BYO): the nodes that match the selector, checked by their live GFD labels.

The algorithm is that of KAITO's cloud provider agnostic scheduling: at least one node matches; product, count and
memory are the same on all of them; and a model that cannot span nodes fits one. Messages keep KAITO's known phrases.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from plimsoll.cluster.catalog import Catalog
from plimsoll.cluster.nodes import (
    GpuRequest,
    NodeIndex,
    PodDevices,
    Tolerance,
    Tolerances,
    Unusable,
    amounts_of,
    invalid_labels,
    none_matches,
    none_usable,
    not_uniform,
    pod_devices,
    short_of_devices,
    short_of_host,
    undiscovered,
    why_unusable,
)
from plimsoll.cluster.profiles import PRODUCT_LABELS, InvalidGpuLabel, discovery_of
from plimsoll.estimating import (
    Estimates,
    ReplicaSize,
    Sizing,
    nodes_in_all,
    not_of_partition,
    replica_need,
    template_gpus,
)
from plimsoll.labels import GPU_COUNT, GPU_MEMORY, GPU_PRODUCT, INSTANCE_TYPE, NODEPOOL
from plimsoll.model import Reason, Refusal
from plimsoll.model.api import (
    INSTANCE_TYPES_FORBIDDEN,
    EnvironmentSpec,
    Partition,
    Resource,
    Workspace,
    instance_type_violation,
)
from plimsoll.model.cluster import NVIDIA, VENDOR_RESOURCES, Device, Node
from plimsoll.model.meta import ANYWHERE, LabelRequirement, LabelSelector, Placement
from plimsoll.plan.workspaces.byo_replica import nodes_of_replica
from plimsoll.plan.workspaces.pod_needs import host_need
from plimsoll.plan.workspaces.pod_placement import unmet_by_nodes
from plimsoll.presets import ModelCatalog
from plimsoll.text import SHOWN, counted, shortlist

_Gpus = tuple[str, int, int]
"""As `PodDevices.uniformity`."""
_Grouped = tuple[Mapping[_Gpus, Mapping[str, Node]], list[str]]


class MatchingNodes(NamedTuple):
    """The nodes that a selector matches."""

    offer: PodDevices
    """The GPUs of a node: the same on every node except for the number of devices, here that of the node with the
    fewest."""
    matching: tuple[str, ...]
    """Matching nodes with GPU labels, usable or not, sorted."""
    usable: tuple[str, ...]
    gpu_labels: tuple[tuple[str, tuple[str, ...]], ...]
    """The labels on GPUs that every usable node has, each with its values, sorted."""
    warnings: tuple[str, ...]


class NodeCriteria(NamedTuple):
    """What a node must meet for a Workspace, besides its selector."""

    tolerance: Tolerance
    partition: Partition | None
    devices: int
    """Devices that the template requests; 0: as many as the nodes have."""
    template: bool = False
    """Whether the Workspace has a template of its own, which may tolerate taints."""
    host: tuple[tuple[str, int], ...] = ()
    """CPU, memory and disk that a pod needs."""
    placement: Placement = ANYWHERE
    """Where its volumes and KAI's node pool of its pods are."""
    claims: bool = False
    """Whether its pods get their GPUs by claims."""

    resource: str = ""
    """The extended resource of whole GPUs that the template requests; empty: none, or several."""

    def devices_on(self, node: Node) -> PodDevices | Unusable | InvalidGpuLabel:
        """What a pod takes of the node."""
        offer = pod_devices(node, self.partition, claims=self.claims)
        return (self._of_other_vendor(offer.device) or offer) if isinstance(offer, PodDevices) else offer

    def _of_other_vendor(self, device: Device) -> Unusable | None:
        """Why pods cannot use GPUs for which their image is not made, or that they do not request."""
        other = device.resource if device.vendor != NVIDIA and device.claimable is None else ""
        if other and not self.template:
            return Unusable(
                f"has {device}, and presets are served by an image for GPUs of NVIDIA",
                advice="use inference.template with an image for them, or select nodes with GPUs of NVIDIA",
            )
        if self.resource and self.resource != other and (other or self.resource in VENDOR_RESOURCES):
            return Unusable(
                f"has {device}, and inference.template requests {self.resource}",
                advice="remove the request, or select nodes that have what it requests",
            )
        return None

    def why_unusable(self, node: Node) -> str:
        """Why its pods cannot be on the node now; empty if they can."""
        problem = why_unusable(node, self.tolerance)
        if problem or self.placement.allows(node.labels, node.name):
            return problem
        return "not where its volumes are, or not in KAI's node pool of its pods"


@dataclass
class _SortedOut:
    """Nodes that match, by what they offer."""

    groups: dict[PodDevices, list[Node]] = field(default_factory=dict)
    """Nodes with valid labels, usable or not, by what they offer."""
    usable: list[tuple[Node, PodDevices]] = field(default_factory=list)
    unusable: dict[str, str] = field(default_factory=dict)
    """Why nodes cannot be used now, by name."""
    unusable_gpus: list[Unusable] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """Nodes that are neither usable nor have valid labels, with the reasons."""
    undiscovered: list[Node] = field(default_factory=list)
    """Nodes that discovery has not reached."""
    invalid: list[tuple[Node, InvalidGpuLabel]] = field(default_factory=list)


class ByoNodes:
    """Checks Workspaces against the nodes of one snapshot; each selector is evaluated once."""

    def __init__(self, index: NodeIndex, models: ModelCatalog, environment: EnvironmentSpec) -> None:
        self._index = index
        self._types = {node.instance_type for node in index.nodes}
        self._models = models
        self._environment = environment
        self._checked: dict[object, MatchingNodes | Refusal] = {}
        self._grouped: dict[object, _Grouped] = {}
        self._tolerances = Tolerances(environment)
        self._estimates = Estimates(environment.estimator)

    def read_by(self, workspace: Workspace, placement: Placement) -> object:
        """What `evaluate` reads of the nodes, wherever its pods may be: it gives the same while this is equal. Without
        a selector, it reads all of them."""
        selector = self._narrowed(workspace.spec.resource)
        if selector.empty:
            return self
        matching = self._index.matching(selector)
        none = all(node.deleting for node in matching)
        return matching, self._types, len(self._index.nodes) if none else 0

    def evaluate(self, workspace: Workspace, placement: Placement) -> Sizing | Refusal:
        """The number of matching nodes that the Workspace needs where its pods may be, or a refusal."""
        resource = workspace.spec.resource
        forbidden = instance_type_violation(
            next(iter(resource.named_types), None),
            auto_provisioning=False,
            narrows=self._environment.narrows_by_type,
        ) or (INSTANCE_TYPES_FORBIDDEN if resource.instance_types else None)
        if forbidden:
            return Refusal(Reason.INSTANCE_TYPE_FORBIDDEN, forbidden)
        requested = template_gpus(workspace, self._environment)
        if isinstance(requested, Refusal):
            return requested
        whole = [each for each in (self._environment.gpu_resource, *VENDOR_RESOURCES) if each in requested]
        devices = requested[whole[0]] if whole else 0
        host = host_need(workspace, self._environment, self._models)
        if isinstance(host, Refusal):
            return host
        template = workspace.template is not None
        tolerance = self._tolerances.of(workspace)
        of_pods = (template, tuple(host.items()), placement, resource.claims, whole[0] if len(whole) == 1 else "")
        criteria = NodeCriteria(tolerance, resource.partition, devices, *of_pods)
        selector = self._narrowed(resource)
        allowed = self._allowed(workspace.namespace)
        if selector.empty:
            sizing = self._choose(workspace, criteria, requested, allowed)
        else:
            nodes = self._select(str(selector), criteria, partial(self._index.matching, selector))
            if isinstance(nodes, Refusal):
                return nodes
            foreign = self._foreign(workspace.namespace, nodes.usable, allowed)
            sizing = foreign or self._size(workspace, nodes, requested)
        if isinstance(sizing, Refusal):
            return sizing
        if resource.instance_type is not None:
            allowed[INSTANCE_TYPE] = selector.match_expressions[-1].values
        usable = ((name, self._index.by_name[name].labels) for name in sizing.node_names)
        unmet = unmet_by_nodes(workspace, self._environment, usable)
        labels = (*sizing.node_labels, *allowed.items())
        return sizing._replace(node_labels=labels, warnings=(*sizing.warnings, *unmet))

    def _narrowed(self, resource: Resource) -> LabelSelector:
        """The selector, with the instance type in the spellings that nodes have, where one is set."""
        if resource.instance_type is None:
            return resource.selector
        spelled = self._spelled(resource.instance_type) or (Catalog.builtin().real_name(resource.instance_type),)
        needed = LabelRequirement(key=INSTANCE_TYPE, operator="In", values=spelled)
        expressions = (*resource.selector.match_expressions, needed)
        return resource.selector.model_copy(update={"match_expressions": expressions})

    def _spelled(self, *types: str) -> tuple[str, ...]:
        """The instance types as nodes spell them, sorted; empty where no node has one."""
        wanted = {Catalog.builtin().real_name(name).casefold() for name in types}
        return tuple(sorted(name for name in self._types if name.casefold() in wanted))

    def _allowed(self, namespace: str) -> dict[str, tuple[str, ...]]:
        """Node labels that `access` limits for the namespace, each with its values; an empty one: without the label."""
        access = self._environment.access_of(namespace)
        values: dict[str, tuple[str, ...]] = {}
        if access is not None and access.node_pools is not None:
            values[NODEPOOL] = ("", *sorted(access.node_pools))
        if access is not None and access.instance_types is not None:
            types = access.instance_types
            values[INSTANCE_TYPE] = tuple(sorted({*types, *self._spelled(*types)}))
        return values

    def _choose(
        self,
        workspace: Workspace,
        criteria: NodeCriteria,
        requested: Mapping[str, int],
        allowed: Mapping[str, tuple[str, ...]],
    ) -> Sizing | Refusal:
        """The smallest group of nodes with the same GPUs that serves the Workspace, where it selects no nodes.

        A group that the Workspace uses, by its status, comes first, so that the choice is stable. The pods require the
        group's GPU labels.
        """
        need = replica_need(workspace, self._models)
        if isinstance(need, Refusal):
            return need
        limits = tuple(allowed.items())
        kind = criteria.partition, criteria.claims, limits
        grouped = self._grouped.get(kind)
        if grouped is None:
            grouped = self._grouped[kind] = self._groups(criteria, allowed)
        groups, excluded = grouped
        if excluded and not groups:
            return Refusal(
                Reason.NOT_ALLOWED,
                f"namespace '{workspace.namespace}' may use none of the nodes with GPUs ({shortlist(excluded)}): "
                "change nodePools or instanceTypes in access of the Environment, or add nodes that it allows",
            )
        used = set(workspace.status.worker_nodes)

        def order(item: tuple[_Gpus, Mapping[str, Node]]) -> tuple[bool, int, _Gpus]:
            (_, count, memory_mib), nodes = item
            return nodes.keys().isdisjoint(used), (count or 1) * memory_mib, item[0]

        refusals, too_few = [], None
        for (product, count, memory_mib), nodes in sorted(groups.items(), key=order):
            text = f"{GPU_PRODUCT}={product},{GPU_COUNT}={count},{GPU_MEMORY}={memory_mib}"
            selected = self._select(text, criteria, partial(tuple, nodes.values()), limits)
            if isinstance(selected, MatchingNodes):
                sizing = self._size(workspace, selected, requested)
                if isinstance(sizing, Sizing):
                    chosen = sizing._replace(message=f"chosen without a selector: {text}; {sizing.message}")
                    if not used.isdisjoint(selected.usable) or sizing.target <= len(selected.usable) * max(
                        sizing.pods_per_node, 1
                    ):
                        return chosen
                    too_few = too_few or chosen
                    continue
                selected = sizing
            refusals.append(f"{text}: {selected.message}")
        if too_few is not None:
            return too_few
        return Refusal(
            Reason.NO_MATCHING_NODES,
            "resource.labelSelector is empty, and no group of nodes with the same GPUs serves the Workspace: "
            + ("; ".join(refusals[:SHOWN]) or "no node has GPU labels; run GPU Feature Discovery"),
        )

    def _groups(self, criteria: NodeCriteria, allowed: Mapping[str, tuple[str, ...]]) -> _Grouped:
        """The allowed nodes by their GPUs and name, and the names of the others with GPUs."""
        groups: dict[_Gpus, dict[str, Node]] = {}
        excluded = []
        for node in self._index.nodes:
            offer = criteria.devices_on(node)
            if not isinstance(offer, PodDevices) or offer.device.resource in VENDOR_RESOURCES:
                continue  # nodes of other vendors are only used where a selector names them
            if all(node.labels.get(key, "") in allowed[key] for key in allowed):
                groups.setdefault(offer.uniformity, {})[node.name] = node
            else:
                excluded.append(node.name)
        return groups, excluded

    def _select(
        self, text: str, criteria: NodeCriteria, find: Callable[[], Sequence[Node]], limits: object = None
    ) -> MatchingNodes | Refusal:
        """The nodes that match, or a refusal if they cannot be used. Cached by the other arguments than `find`."""
        key = (text, limits, criteria.tolerance.key, *criteria[1:])
        nodes = self._checked.get(key)
        if nodes is None:
            nodes = self._checked[key] = self._check(find(), text, criteria)
        return nodes

    def _check(self, matching: Sequence[Node], text: str, criteria: NodeCriteria) -> MatchingNodes | Refusal:
        nodes = [node for node in matching if not node.deleting]
        if not nodes:
            return none_matches(text, len(self._index.nodes), [node.name for node in matching])
        sorted_out = self._sorted_out(nodes, criteria)
        if sorted_out.invalid:
            return invalid_labels(sorted_out.invalid)
        if not sorted_out.groups and sorted_out.undiscovered and not sorted_out.unusable:
            return undiscovered(sorted_out.undiscovered)
        if len({offer.uniformity for offer in sorted_out.groups}) > 1:
            return not_uniform(text, sorted_out.groups)
        fewest = min(sorted_out.groups, key=lambda offer: (offer.devices, offer.gpu_count), default=None)
        names, unusable = self._large_enough(sorted_out, criteria, fewest)
        if not names or fewest is None:
            mode = criteria.partition.mode if criteria.partition is not None else ""
            resource = (fewest.device.resource if fewest is not None else "") or self._environment.gpu_resource
            requested = GpuRequest(resource, mode, criteria.template, criteria.devices)
            discovered = [node for node in nodes if node.name in unusable]
            return none_usable(text, discovered, unusable, sorted_out.unusable_gpus, requested)
        return MatchingNodes(
            offer=fewest,
            matching=tuple(sorted(node.name for alike in sorted_out.groups.values() for node in alike)),
            usable=tuple(names),
            gpu_labels=_gpu_labels([self._index.by_name[name] for name in names]),
            warnings=tuple(_warnings(sorted_out, unusable)),
        )

    def _sorted_out(self, nodes: Iterable[Node], criteria: NodeCriteria) -> "_SortedOut":
        """The nodes by what they offer, and those that cannot be used."""
        sorted_out = _SortedOut()
        # By identity: equal nodes share one offer, and hashing it for each node is the slowest step.
        by_offer: dict[int, tuple[PodDevices, list[Node]]] = {}
        for node in nodes:
            offer = criteria.devices_on(node)
            problem = criteria.why_unusable(node)
            if isinstance(offer, PodDevices):
                by_offer.setdefault(id(offer), (offer, []))[1].append(node)
                if not problem:
                    sorted_out.usable.append((node, offer))
            elif isinstance(offer, Unusable):
                sorted_out.unusable_gpus.append(offer)
                problem = problem or offer.problem
            elif problem:
                sorted_out.left_out.append(f"{node.name} ({problem}; {offer})")
            elif discovery_of(node).unlabelled:
                sorted_out.undiscovered.append(node)
            else:
                sorted_out.invalid.append((node, offer))
            if problem:
                sorted_out.unusable[node.name] = problem
        for offer, alike in by_offer.values():
            sorted_out.groups.setdefault(offer, []).extend(alike)
        return sorted_out

    def _large_enough(
        self, sorted_out: "_SortedOut", criteria: NodeCriteria, fewest: PodDevices | None
    ) -> tuple[list[str], Mapping[str, str]]:
        """Names of the usable nodes with enough allocatable for a pod, and why the others cannot be used."""
        names, unusable, host = [], dict(sorted_out.unusable), dict(criteria.host)
        for node, offer in sorted_out.usable:
            devices = criteria.devices or (fewest or offer).devices
            short = short_of_devices(node, offer, devices, self._environment.gpu_resource)
            short = short or (short_of_host(host, amounts_of(node.allocatable)) if host else "")
            if short:
                unusable[node.name] = short
            else:
                names.append(node.name)
        return names, unusable

    def _foreign(
        self, namespace: str, names: tuple[str, ...], allowed: Mapping[str, tuple[str, ...]]
    ) -> Refusal | None:
        """A refusal of nodes that the namespace may not use."""
        for key, values in allowed.items():
            noun = "NodePool" if key == NODEPOOL else "instance type"
            labels = ((name, self._index.by_name[name].labels.get(key, "")) for name in names)
            foreign = [f"{name} ({noun} {label or 'unknown'})" for name, label in labels if label not in values]
            if foreign:
                return Refusal(
                    Reason.NOT_ALLOWED,
                    f"namespace {namespace!r} may use the {noun}s {shortlist(filter(None, values)) or '(none)'} only, "
                    f"but the selector matches {shortlist(foreign)}: narrow resource.labelSelector",
                )
        return None

    def _size(self, workspace: Workspace, nodes_found: MatchingNodes, requested: Mapping[str, int]) -> Sizing | Refusal:
        need = replica_need(workspace, self._models)
        if isinstance(need, Refusal):
            return need
        offer, gpu_resource = nodes_found.offer, self._environment.gpu_resource
        if offer.pods and (other := not_of_partition(requested, offer.device.resource or gpu_resource, offer.devices)):
            return other
        nodes_text = f"{counted(len(nodes_found.matching), 'matching node')}, {len(nodes_found.usable)} usable, {offer}"
        warnings = nodes_found.warnings
        replica = ReplicaSize(1)
        if need is not None:
            sized = nodes_of_replica(need, offer, nodes_found.matching, self._estimates)
            if isinstance(sized, Refusal):
                return sized
            replica = sized
            warnings = (*warnings, *replica.warnings, *need.warnings)
        target, deprecated = nodes_in_all(workspace, replica.nodes)
        size_text = f"one replica takes {replica}"
        gpus = offer.gpu_count
        if offer.pods:
            how = f": {replica.serving}" if replica.serving is not None else ""
            taken = f"{offer.devices} of {offer.device.resource or 'its GPUs'}"
            size_text = f"one replica takes {taken}, and {offer.pods} fit a node{how}"
            gpus = offer.devices * offer.pods
            target = math.ceil(workspace.replicas / offer.pods)
        return Sizing(
            per_replica=replica.nodes,
            target=target,
            message=f"{nodes_text}; {size_text}",
            node_names=nodes_found.usable,
            devices=offer.devices,
            resource=offer.device.resource,
            serving=replica.serving,
            node_labels=nodes_found.gpu_labels,
            requested=requested.get(offer.device.resource or gpu_resource) or offer.devices,
            pods_per_node=offer.pods,
            gpus=gpus,
            warnings=(*warnings, *deprecated),
        )


def _gpu_labels(nodes: list[Node]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The GPU labels of the nodes: pods require them, so that none is placed on GPUs that were not validated."""
    keys = (GPU_PRODUCT, GPU_COUNT, GPU_MEMORY, *PRODUCT_LABELS)
    by_label = ((key, [node.labels.get(key) for node in nodes]) for key in keys)
    return tuple((key, tuple(sorted({value for value in values if value}))) for key, values in by_label if all(values))


def _warnings(nodes: _SortedOut, unusable: Mapping[str, str]) -> Iterator[str]:
    if nodes.left_out:
        yield f"skipped, neither usable nor with valid GPU labels: {shortlist(nodes.left_out)}"
    elif unusable:
        yield f"not usable now: {shortlist([f'{name} ({problem})' for name, problem in unusable.items()])}"
    if nodes.undiscovered:
        yield (
            "skipped, as GPU Feature Discovery has not run there yet: "
            f"{shortlist([node.name for node in nodes.undiscovered])}"
        )
    nodes_by_message: dict[str, list[str]] = {}
    for node, _ in nodes.usable:
        for finding in discovery_of(node).findings:
            nodes_by_message.setdefault(finding.message, []).append(node.name)
    for message, names in nodes_by_message.items():
        yield f"{shortlist(names)}: {message}"
    yield from dict.fromkeys(offer.warning for offer in nodes.groups if offer.warning)

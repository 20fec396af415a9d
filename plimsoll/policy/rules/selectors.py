"""Rules on the labels by which pods select nodes: discovery writes them, so their values are known from the nodes."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from plimsoll.errors import InvalidObjectError
from plimsoll.labels import GROUP
from plimsoll.model import Snapshot
from plimsoll.model.api import Environment, KnownNodeProfile
from plimsoll.model.cluster import Node
from plimsoll.model.karpenter import NodePool
from plimsoll.model.meta import Finding, NodeRequirement, ObservedObject, Placement, Severity, identify
from plimsoll.policy.context import PolicyContext, environment_of
from plimsoll.policy.fields import Manifest, is_kind, join, kind_of, name_of, namespace_of
from plimsoll.policy.pod_templates import PodTemplate, pod_templates
from plimsoll.policy.rule import Family, Rule
from plimsoll.text import did_you_mean, nearest, shortlist

if TYPE_CHECKING:
    from plimsoll.cluster.profiles import NodeProfile

SELECTOR_RULE: Final = "gpu-workload-selects-known-label"
_BY_DISCOVERY: Final = ("nvidia.com/gpu.", "nvidia.com/mig", "feature.node.kubernetes.io/")

Observed = TypeVar("Observed", bound=ObservedObject)


class _Unmet(NamedTuple):
    """A condition of a pod template that no node meets."""

    field: str
    condition: NodeRequirement


class _Offer:
    """The labels of the nodes among some manifests, and of those that their NodePools would create."""

    def __init__(self, manifests: Sequence[Manifest]) -> None:
        self._manifests = manifests
        self.nodes = self._read(Node, "")
        self._pools = self._read(NodePool, "karpenter.sh")

    @cached_property
    def profiles(self) -> "tuple[NodeProfile, ...]":
        """Those with GPUs. A NodePool with a fixed number of nodes offers what it would if it were scaled."""
        # Here, because programs of stacks import the rules, and packing takes long to import.
        from plimsoll.cluster.pools import PoolProfiles

        known = self._read(KnownNodeProfile, GROUP, "NodeProfile")
        spec = environment_of(self._manifests) or {}
        environment = Environment.read({"metadata": {"name": "checked"}, "spec": spec})
        pools = tuple(pool.model_copy(update={"replicas": None}) for pool in self._pools)
        snapshot = Snapshot(environment=environment, nodes=self.nodes, node_pools=pools, node_profiles=known)
        return PoolProfiles(snapshot).every

    def _read(self, model: type[Observed], group: str, kind: str = "") -> tuple[Observed, ...]:
        """The manifests of a kind. Raises InvalidObjectError."""
        wanted = kind or model.__name__
        return tuple(model.read(each) for each in self._manifests if is_kind(each, group, wanted))

    def values(self, key: str) -> list[str]:
        """The values that the label has, sorted."""
        labels = [*(node.labels for node in self.nodes), *(profile.labels for profile in self.profiles)]
        return sorted({of[key] for of in labels if key in of})

    def meets(self, condition: NodeRequirement) -> bool:
        """Whether a node that exists, or that a NodePool would create, meets it."""
        alone = Placement(affinity=((condition,),))
        return any(condition.allows(node.labels.get(condition.key)) for node in self.nodes) or any(
            not profile.unmet(alone) for profile in self.profiles
        )

    def unmet(self, template: PodTemplate) -> Iterator[_Unmet]:
        """The conditions on labels of discovery that keep its pods from every node."""
        try:
            placement = Placement.read(template.spec)
        except ValueError:
            return  # the apiserver refuses it
        for key, value in placement.node_selector:
            condition = NodeRequirement(key, "In", (value,))
            if key.startswith(_BY_DISCOVERY) and not self.meets(condition):
                yield _Unmet(join(template.path, "spec", "nodeSelector", key), condition)
        alternatives = [self._first_unmet(term) for term in placement.affinity]
        if alternatives and None not in alternatives:
            field = join(template.path, "spec", "affinity", "nodeAffinity")
            yield from (_Unmet(field, condition) for condition in dict.fromkeys(alternatives) if condition is not None)

    def _first_unmet(self, term: Sequence[NodeRequirement]) -> NodeRequirement | None:
        return next((each for each in term if each.key.startswith(_BY_DISCOVERY) and not self.meets(each)), None)


def _unknown(manifests: Sequence[Manifest], _: PolicyContext, __: Any) -> Iterator[Finding]:
    """Says nothing where an object that has a part in it is invalid: what its nodes have is not known."""
    try:
        offer = _Offer(manifests)
        known = bool(offer.profiles or offer.nodes)
    except InvalidObjectError:
        return
    templates = [(each, template) for each in manifests for template in pod_templates(each)] if known else []
    for manifest, template in templates:
        if template.wants_gpus:
            for field, condition in offer.unmet(template):
                yield _finding(manifest, field, condition, offer.values(condition.key))


def _finding(manifest: Manifest, field: str, condition: NodeRequirement, values: list[str]) -> Finding:
    there = f"the nodes have {shortlist(values)}" if values else "no node is known to have the label"
    near = dict.fromkeys(each for value in condition.values for each in nearest(value, values))
    hint = f": {found}" if (found := did_you_mean(list(near))) else ""
    message = f"{identify(manifest)}: {field} requires {condition}, but {there}{hint}"
    return Finding(
        kind_of(manifest),
        namespace_of(manifest),
        name_of(manifest),
        field,
        SELECTOR_RULE,
        Severity.WARNING,
        message,
    )


RULES: Final = (
    Rule(
        SELECTOR_RULE,
        Family.NODE_POOLS,
        "A workload with GPUs selects values of discovery's labels that a node or NodePool among the objects has.",
        "Select a value that nodes have, or declare the label in a NodeProfile.",
        ("Pod", "objects with a pod template", "NodePool", "NodeProfile", "Node"),
        check_all=_unknown,
        severity=Severity.WARNING,
        loop=False,
    ),
)

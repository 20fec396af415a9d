"""SeenNodes: what nodes of a NodePool and an instance type say, which exist, or existed."""

from collections.abc import Iterable

from plimsoll.cluster.catalog import NodeTemplate
from plimsoll.cluster.nodes import NodeIndex
from plimsoll.cluster.profiles import Said, Source, lasting, learned_of, read_discovery
from plimsoll.labels import NODEPOOL
from plimsoll.model.api import KnownNodeProfile, NodeProfileSpec, ProfileReport, profile_name
from plimsoll.model.cluster import Node


class SeenNodes:
    """Finds them among the nodes and the NodeProfiles of one snapshot. Instance types are case-insensitive."""

    def __init__(self, index: NodeIndex, profiles: Iterable[KnownNodeProfile]) -> None:
        self._index = index
        self._profiles = {known.pair: known for known in sorted(profiles, key=lambda known: known.name, reverse=True)}

    def types_of(self, node_pool: str) -> set[str]:
        """Instance types of which there is a NodeProfile of the NodePool."""
        return {known.spec.instance_type for known in self._profiles.values() if known.spec.node_pool == node_pool}

    def of(self, template: NodeTemplate, instance_type: str) -> Said | None:
        """What nodes that exist say, else what was learned; None where no node was seen.

        What was learned before the NodePool's template declared other labels counts no more, and nothing that is no
        complete discovery: others may write to a status.
        """
        pool = template.pool.name
        nodes = self._live(pool, instance_type)
        if nodes:
            first = nodes[0]
            published = first.published.kinds
            return Said(Source.LIVE, f"node {first.name}", lasting(first.labels), first.allocatable, published)
        known = self.profile(pool, instance_type)
        learned = known.status.learned if known is not None else None
        if known is None or learned is None or template.contradicts(learned.labels):
            return None
        published = learned.claim_devices.published if learned.claim_devices is not None else ()
        discovery = read_discovery(learned.labels, learned.allocatable, published=published)
        if not (discovery.complete and discovery.devices):
            return None
        where = f"NodeProfile {known.name}"
        return Said(Source.LEARNED, where, lasting(learned.labels), learned.allocatable, published)

    def profile(self, node_pool: str, instance_type: str) -> KnownNodeProfile | None:
        """The NodeProfile of such nodes; the first by name where there are several."""
        return self._profiles.get((node_pool, instance_type.casefold()))

    def declared(self, node_pool: str, instance_type: str) -> NodeProfileSpec | None:
        """What a NodeProfile declares of such nodes."""
        known = self.profile(node_pool, instance_type)
        return known.spec if known is not None else None

    def learned(self) -> tuple[ProfileReport, ...]:
        """What nodes that exist say and NodeProfiles do not yet, by name."""
        pairs = {(node.labels.get(NODEPOOL, ""), node.instance_type) for node in self._index.nodes}
        reports = []
        for pool, name in sorted(pair for pair in pairs if all(pair)):
            nodes = self._live(pool, name)
            if not nodes:
                continue
            known = self.profile(pool, name)
            learned = learned_of(nodes, known.status.learned if known is not None else None)
            if known is None or known.status.learned is None or not known.status.learned.says(learned):
                profile = known.name if known is not None else profile_name(pool, name)
                reports.append(
                    ProfileReport(name=profile, node_pool=pool, instance_type=name, learned=learned, new=known is None)
                )
        return tuple(sorted(reports, key=lambda report: report.name))

    def _live(self, pool: str, name: str) -> list[Node]:
        """The nodes that say what most of them do."""
        usual = self._index.usual(name, pool)
        return usual[0] if usual is not None else []

"""NodePools with nodes that come and go, and what is learned of them."""

from collections.abc import Iterable, Mapping
from typing import Any

from plimsoll.cluster.nodes import NodeIndex
from plimsoll.cluster.pools import PoolProfiles, SeenNodes
from plimsoll.cluster.profiles import NodeProfile
from plimsoll.labels import INSTANCE_TYPE, NODEPOOL
from plimsoll.model.api import KnownNodeProfile
from plimsoll.model.cluster import Node
from plimsoll.model.karpenter import NodePool
from tests.builders import a_gpu_node, a_node_profile, a_snapshot

TYPE = "g6.xlarge"
"""1 x L4, in the catalog."""
FAMILY = "nvidia.com/gpu.family"
PRODUCT = "nvidia.com/gpu.product"
FEATURE = "feature.node.kubernetes.io/pci-10de.present"


def pool_node(name: str = "n1", of_pool: str = "gpu", labels: Mapping[str, str] | None = None, **fields: Any) -> Node:
    """A node of the NodePool with an L4, whose discovery is complete."""
    given = {"cpu": "3500m", "host_memory": "14Gi", "instance_type": TYPE, **fields}
    return a_gpu_node(name, "NVIDIA-L4", more_labels={NODEPOOL: of_pool, **(labels or {})}, **given)


def profile_of(*objects: Any, environment: Any = None) -> NodeProfile:
    """The only profile of the NodePools."""
    found = PoolProfiles(a_snapshot(*objects, environment=environment))
    (profile,) = (*found.shapes, *found.divided)
    return profile


def learn(nodes: Iterable[Node], profiles: Iterable[KnownNodeProfile] = ()) -> dict[str, KnownNodeProfile]:
    """The NodeProfiles after the controller has written what these nodes show, by name."""
    known = {each.name: each for each in profiles}
    for report in SeenNodes(NodeIndex(nodes), known.values()).learned():
        before = known.get(report.name)
        spec = before.spec if before is not None else None
        known[report.name] = a_node_profile(
            report.node_pool,
            report.instance_type,
            labels=spec.labels if spec is not None else {},
            allocatable=spec.allocatable if spec is not None else {},
            learned=report.learned.model_dump(by_alias=True),
        ).model_copy(update={"name": report.name})
    return known


def pool_of(instance_type: str = TYPE, name: str = "gpu", labels: Mapping[str, str] | None = None) -> NodePool:
    return NodePool.read(
        {
            "metadata": {"name": name},
            "spec": {
                "template": {
                    "metadata": {"labels": dict(labels or {})},
                    "spec": {
                        "requirements": [{"key": INSTANCE_TYPE, "operator": "In", "values": [instance_type]}],
                        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
                    },
                }
            },
        }
    )

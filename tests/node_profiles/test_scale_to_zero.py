"""A NodePool that was scaled to zero serves pods as it would with a full node of the type."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.labels import GPU_RESOURCE
from plimsoll.model.api import KnownNodeProfile
from plimsoll.model.cluster import Node, Pod
from tests.builders import a_waiting_pod
from tests.demand.plans import planned
from tests.node_profiles.cluster import FAMILY, FEATURE, PRODUCT, TYPE, learn, pool_node, pool_of

SHARED = {
    PRODUCT: "NVIDIA-L4-SHARED",
    "nvidia.com/gpu.replicas": "4",
    "nvidia.com/gpu.sharing-strategy": "time-slicing",
}
POOLS = ("a", "b")


@dataclass(frozen=True)
class Kind:
    """How the nodes of a NodePool are."""

    labels: tuple[tuple[str, str], ...]
    cpu: str
    devices: int


KINDS = st.builds(
    Kind,
    st.sampled_from([(), tuple(SHARED.items()), ((FAMILY, "ada-lovelace"), (FEATURE, "true")), ((FAMILY, "other"),)]),
    st.sampled_from(["3500m", "2"]),
    st.sampled_from([1, 4]),
)
PODS = st.builds(
    lambda fraction, selector, cpu: a_waiting_pod(gpu_fraction=fraction, selector=selector, cpu=cpu),
    st.sampled_from(["0.5", "1", "0.3"]),
    st.sampled_from([{}, {PRODUCT: "NVIDIA-L4"}, {FAMILY: "other"}, {FAMILY: "ada-lovelace"}, {FEATURE: "true"}]),
    st.sampled_from(["", "2500m", "1"]),
)
STEPS = st.lists(st.tuples(st.sampled_from(POOLS), st.booleans()), max_size=8)


def node_of(pool: str, kind: Kind, name: str) -> Node:
    node = pool_node(name, pool, dict(kind.labels), cpu=kind.cpu)
    return node.model_copy(update={"allocatable": {**node.allocatable, GPU_RESOURCE: str(kind.devices)}})


def full(node: Node, kind: Kind) -> list[Pod]:
    """Pods that leave nothing of it."""
    return [a_waiting_pod(f"on-{node.name}", gpus=kind.devices, cpu=kind.cpu, node=node.name, phase="Running")]


def asked(
    waiting: list[Pod], nodes: dict[str, Node], kinds: dict[str, Kind], known: dict[str, KnownNodeProfile]
) -> object:
    """The nodes that are requested of the NodePools with a profile, and the pods that are refused."""
    pools = [pool_of(TYPE, name) for name in sorted({each.spec.node_pool for each in known.values()})]
    pods = [pod for name, node in nodes.items() for pod in full(node, kinds[name.partition("-")[0]])]
    plan = planned(*waiting, *pods, *nodes.values(), *pools, *known.values())
    requests = sorted((each.node_pool, each.instance_type, sorted(each.pods)) for each in plan.nodes)
    return requests, sorted(uid for demand in plan.demands for uid in demand.refused)


@given(st.fixed_dictionaries(dict.fromkeys(POOLS, KINDS)), STEPS, st.lists(PODS, min_size=1, max_size=3))
def test_the_plan_at_zero_is_that_beside_full_nodes(
    kinds: dict[str, Kind], steps: list[tuple[str, bool]], pods: list[Pod]
) -> None:
    """Nodes come and go in any order, and the controller writes what it sees after each step."""
    nodes: dict[str, Node] = {}
    known: dict[str, KnownNodeProfile] = {}
    for number, (pool, comes) in enumerate(steps):
        of_pool = [name for name in nodes if name.startswith(pool)]
        if comes:
            name = f"{pool}-{number}"
            nodes[name] = node_of(pool, kinds[pool], name)
        elif of_pool:
            del nodes[of_pool[0]]
        known = learn(nodes.values(), known.values())
    seen = {each.spec.node_pool for each in known.values()}
    assert seen == {pool for pool, comes in steps if comes}
    waiting = [
        pod.model_copy(update={"name": f"pod-{number}", "uid": f"uid-{number}"}) for number, pod in enumerate(pods)
    ]
    full_nodes = {f"{pool}-full": node_of(pool, kinds[pool], f"{pool}-full") for pool in sorted(seen)}
    assert asked(waiting, full_nodes, kinds, known) == asked(waiting, {}, kinds, known)

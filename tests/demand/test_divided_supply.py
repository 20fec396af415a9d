"""What classes leave of existing nodes: kept from round to round, it is what it would be if it were worked out anew."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.model.meta import Placement
from plimsoll.packing.nodes import FilledNode, FreeNode, NodePacking, PodNeed
from plimsoll.plan.classes import DemandClass
from plimsoll.plan.demand import DemandSupply, DividedSupply, Holder, PackedClass, ServedPlacements
from tests.builders import a_gpu_node

PRODUCTS = ("NVIDIA-L4", "NVIDIA-A10G")
CLASSES = (
    DemandClass(Placement((("nvidia.com/gpu.product", "NVIDIA-L4"),)), "one"),
    DemandClass(Placement(), "two"),
    DemandClass(Placement(), "three"),
)
NEEDS = {
    of: {f"{of.queue}-{n}": PodNeed(f"{of.queue}-{n}", dict.fromkeys(PRODUCTS, 100 * (n + 1))) for n in range(8)}
    for of in CLASSES
}
NAMES = tuple(f"node-{number}" for number in range(5))


class Model:
    """Nodes and places as they are, without any memory."""

    def __init__(self) -> None:
        self.whole: dict[str, FreeNode] = {}
        self.came: dict[str, str] = {}
        self.packed = dict.fromkeys(CLASSES, PackedClass(NodePacking()))

    def left(self) -> dict[str, FreeNode]:
        """What nobody has; places that are not free any more are lost."""
        left = {name: node for name, node in self.whole.items() if name not in self.came}
        for of in CLASSES:
            kept = []
            for node in self.packed[of].on_nodes:
                free = left.get(node.node or "")
                taken = sum(NEEDS[of][uid].milli[PRODUCTS[0]] for uid in node.gpus[0])
                fits = free is not None and free.gpus[0] >= taken and free.pods >= len(node.gpus[0])
                if free is not None and fits and self.serves(of, free):
                    left[free.name] = replace(free, gpus=(free.gpus[0] - taken,), pods=free.pods - len(node.gpus[0]))
                    kept.append(node)
            if len(kept) < len(self.packed[of].on_nodes):
                self.packed[of] = PackedClass(NodePacking(), tuple(kept))
        return left

    def parts(self, of: DemandClass) -> dict[str, tuple[int, int]]:
        """What the class may have, as (thousandths, pods)."""
        found = {name: (free.gpus[0], free.pods) for name, free in self.left().items() if self.serves(of, free)}
        for node in self.packed[of].on_nodes:
            milli, pods = found[node.node or ""]
            own = sum(NEEDS[of][uid].milli[PRODUCTS[0]] for uid in node.gpus[0])
            found[node.node or ""] = milli + own, pods + len(node.gpus[0])
        return {name: part for name, part in found.items() if part[0]}

    def serves(self, of: DemandClass, free: FreeNode) -> bool:
        return not of.placement.node_selector or free.kind == PRODUCTS[0]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_what_is_kept_is_what_would_be_worked_out_anew(data: st.DataObject) -> None:
    model, served, before = Model(), ServedPlacements(), DividedSupply()
    for _ in range(data.draw(st.integers(2, 8), "rounds")):
        changed = data.draw(st.sets(st.sampled_from(NAMES), max_size=2), "changed")
        for name in changed:
            change(model, served, name, data)
        supply = DemandSupply(model.whole, served, model.came, changed)
        asking = CLASSES[: data.draw(st.integers(2, 3), "classes")]
        model.packed |= dict.fromkeys(CLASSES[len(asking) :], PackedClass(NodePacking()))
        divided = before.renewed(supply, asking)
        packed = dict(model.packed)
        for of in asking:
            divided.keep(of, packed[of], NEEDS[of])
            assert found(divided, of) == model.parts(of)
        for of in data.draw(st.lists(st.sampled_from(asking), max_size=2), "packed"):
            assert found(divided, of) == model.parts(of)
            model.packed[of] = PackedClass(NodePacking(), tuple(places(model.parts(of), of, data)))
            divided.keep(of, model.packed[of], NEEDS[of])
        for of in asking:
            divided.keep(of, model.packed[of], NEEDS[of])
            assert found(divided, of) == model.parts(of)
        before = divided


def change(model: Model, served: ServedPlacements, name: str, data: st.DataObject) -> None:
    """The node is gone, or is one of this product with so much free; it may have come for a demand."""
    product = data.draw(st.sampled_from([None, *PRODUCTS]), "product")
    model.whole.pop(name, None)
    model.came.pop(name, None)
    if product is None:
        served.put(name, None)
        return
    milli, pods = data.draw(st.integers(1, 1000), "milli"), data.draw(st.integers(1, 4), "pods")
    model.whole[name] = FreeNode(name, product, (milli,), 0, 0, pods)
    served.put(name, Holder(a_gpu_node(name, product), product, None))
    if data.draw(st.booleans(), "came"):
        model.came[name] = "some-demand"


def found(divided: DividedSupply, of: DemandClass) -> dict[str, tuple[int, int]]:
    parts = divided.given(of, NEEDS[of], (), ()).free
    return {node.name: (node.gpus[0], node.pods) for node in parts}


def places(parts: dict[str, tuple[int, int]], of: DemandClass, data: st.DataObject) -> list[FilledNode]:
    """Places for some of the pods of the class, each on a node that has room."""
    left, held = dict(parts), dict[str, list[str]]()
    for uid in data.draw(st.sets(st.sampled_from(sorted(NEEDS[of])), max_size=4), "pods"):
        size = NEEDS[of][uid].milli[PRODUCTS[0]]
        roomy = sorted(name for name, (milli, pods) in left.items() if milli >= size and pods)
        if roomy:
            name = data.draw(st.sampled_from(roomy), "node")
            left[name] = left[name][0] - size, left[name][1] - 1
            held.setdefault(name, []).append(uid)
    return [FilledNode((tuple(uids),), PRODUCTS[0], node=name) for name, uids in held.items()]

"""GPUs as bars filled with shares, before and after the demand is met; equal ones as one row."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from plimsoll.cluster.ledger import GpuAccount, GpuLedger
from plimsoll.cluster.pods import PodShare, size_by_kind
from plimsoll.labels import NODEPOOL
from plimsoll.model.api import DemandSettings
from plimsoll.model.cluster import Device
from plimsoll.packing import GPU_MILLI, Milli, exact_milli
from plimsoll.plan.demand import DemandPlan, PlannedNode
from plimsoll.text import counted, shortlist


class Part(StrEnum):
    USED = "used"
    """By existing pods."""
    PLANNED = "planned"
    """By pending pods."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of one GPU."""

    milli: Milli
    what: Part
    label: str
    """Pods or group, for people."""


@dataclass(frozen=True, slots=True)
class GpuBar:
    before: tuple[Segment, ...] = ()
    after: tuple[Segment, ...] = ()

    @property
    def changed(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class NodeBars:
    """The GPUs of one node."""

    name: str
    """Of a new node, a number."""
    kind: str
    bars: tuple[GpuBar, ...]
    shape: str = ""
    """NodePool and instance type of a new node; empty for an existing one."""

    @property
    def new(self) -> bool:
        return bool(self.shape)

    @property
    def changed(self) -> bool:
        return any(bar.changed for bar in self.bars)


def gpu_picture(ledger: GpuLedger, plan: DemandPlan, settings: DemandSettings) -> tuple[NodeBars, ...]:
    """Nodes that get pods first, then those in use, then new ones; without nodes that are entirely free."""
    return _Picture(plan, settings).nodes(ledger)


class _Picture:
    def __init__(self, plan: DemandPlan, settings: DemandSettings) -> None:
        self._plan = plan
        self._settings = settings
        self._pods: Mapping[str, PodShare] = {uid: each for of in plan.demands for uid, each in of.pods.items()}

    def nodes(self, ledger: GpuLedger) -> tuple[NodeBars, ...]:
        placed = {node.node: node.devices for node in self._plan.places}
        existing = [self._of_account(each, placed.get(each.node.name, ())) for each in ledger.accounts()]
        shown = [each for each in existing if each.changed or any(bar.before for bar in each.bars)]
        new = [self._of_planned(number, node) for number, node in enumerate(self._plan.nodes, start=1)]
        return (*sorted(shown, key=lambda each: (not each.changed, each.name)), *new)

    def _of_planned(self, number: int, node: PlannedNode) -> NodeBars:
        shape = f"{node.node_pool}/{node.instance_type}"
        if node.resource:
            per_gpu = self._settings.sharing_of(node.node_pool, node.instance_type).per_gpu
            after = _in_turn(self._devices(node.pods), per_gpu, node.gpus)
        else:
            gpus = Device(node.kind, node.gpu_memory_mib, 1)
            held = [*node.held, *[()] * (node.gpus - len(node.held))]
            after = [tuple(self._planned(uid, gpus) for uid in uids) for uids in held]
        return NodeBars(f"new {number}", node.kind, tuple(GpuBar((), each) for each in after), shape)

    def _of_account(self, account: GpuAccount, placed: Sequence[Sequence[str]]) -> NodeBars:
        """In the order of the account's free thousandths: GPU groups, free GPUs, allocated whole GPUs."""
        node = account.node
        sharing = self._settings.sharing_of(node.labels.get(NODEPOOL, ""), node.instance_type)
        if sharing.resource:
            uids = sorted({uid for held in placed for uid in held})
            bars = self._of_shared(account, sharing.resource, sharing.per_gpu, uids)
            return NodeBars(node.name, account.kind, bars)
        before: list[tuple[Segment, ...]] = [
            (Segment(group.used_milli, Part.USED, ", ".join(group.pods) or f"group {group.name}"),)
            for group in account.groups
        ]
        before += [
            tuple(Segment(milli, Part.USED, f"claim {claim}") for claim, milli in device.claims)
            for device in account.shared
        ]
        before += [()] * account.free_gpus
        before += [(Segment(GPU_MILLI, Part.USED, "whole"),)] * account.whole
        gpus = account.device.one
        planned = [[self._planned(uid, gpus) for uid in uids if uid in self._pods] for uids in placed]
        added = planned or [[] for _ in before]
        bars = tuple(GpuBar(was, (*was, *more)) for was, more in zip(before, added, strict=False))
        return NodeBars(node.name, account.kind, bars)

    def _of_shared(self, account: GpuAccount, resource: str, per_gpu: int, uids: Sequence[str]) -> tuple[GpuBar, ...]:
        devices = account.devices_of(resource)
        used = [(Part.USED, resource, devices.allocatable - devices.free)]
        gpus = -(-devices.allocatable // per_gpu)
        after = _in_turn([*used, *self._devices(uids)], per_gpu, gpus)
        return tuple(GpuBar(*each) for each in zip(_in_turn(used, per_gpu, gpus), after, strict=True))

    def _devices(self, uids: Iterable[str]) -> list[tuple[Part, str, int]]:
        """Shared devices of planned pods."""
        pods = [self._pods[uid] for uid in uids if uid in self._pods]
        return [(Part.PLANNED, _label(each), each.share.devices) for each in pods]

    def _planned(self, uid: str, gpus: Device) -> Segment:
        """The part of such a GPU that the plan counts for the pod."""
        each, settings = self._pods[uid], self._settings
        sizes = size_by_kind(each.share, {"": gpus}, settings.assumed_share_milli, settings.gpu_tflops)
        return Segment(sizes.milli.get("", 0), Part.PLANNED, _label(each))


def _in_turn(held: Iterable[tuple[Part, str, int]], per_gpu: int, gpus: int) -> list[tuple[Segment, ...]]:
    """Segments of each GPU for devices that each are one of `per_gpu` parts of a GPU, as (what, label, number): those
    of one GPU are taken before those of the next, because it is not known which GPU a device belongs to."""
    taken = [(what, label) for what, label, devices in held for _ in range(devices)]
    counted_by_gpu = [Counter(taken[at : at + per_gpu]) for at in range(0, gpus * per_gpu, per_gpu)]
    return [
        tuple(Segment(exact_milli(number, per_gpu), what, label) for (what, label), number in each.items())
        for each in counted_by_gpu
    ]


def _label(each: PodShare) -> str:
    return f"{each.pod.namespace}/{each.pod.name}"


def summary(nodes: Iterable[NodeBars]) -> str:
    """GPUs in use before and after, and how full they are; for people."""
    nodes = tuple(nodes)
    bars = [bar for node in nodes for bar in node.bars]
    used = sum(bool(bar.before) for bar in bars)
    filled = [sum(each.milli for each in bar.after) for bar in bars if bar.after]
    full = f", {round(100 * sum(filled) / GPU_MILLI / len(filled))} % full" if filled else ""
    new = sum(node.new for node in nodes)
    return (
        f"{counted(used, 'GPU')} in use before, {len(filled)} after{full}; "
        f"{counted(new, 'new node')} with {counted(sum(len(node.bars) for node in nodes if node.new), 'GPU')}"
    )


_NAMES = 2
"""Nodes that a row names."""


@dataclass(slots=True)
class GpuRow:
    """GPUs that look the same. `bar` has the segments of one of them, the largest shares first."""

    bar: GpuBar
    new: bool
    shape: str
    """NodePool and instance type of new nodes; empty for existing nodes."""
    gpus: int = 0
    nodes: dict[str, None] = field(default_factory=dict)
    """Names, in order."""
    labels: list[dict[str, None]] = field(default_factory=list)
    """The labels of the segments after, of all GPUs of the row."""

    @property
    def where(self) -> str:
        return f"new {self.shape}" if self.new else shortlist(self.nodes, _NAMES)

    @property
    def order(self) -> tuple[int, str, bool, int]:
        """GPUs that get pods first, then new ones, then unchanged ones; rows with more GPUs first."""
        section = 1 if self.new else 0 if self.bar.changed else 2
        return section, self.shape, not self.bar.after, -self.gpus

    def title(self, number: int) -> str:
        """The title of a segment after: its pods, and its fraction of each GPU."""
        return f"{shortlist(self.labels[number])}: {float(self.bar.after[number].milli) / GPU_MILLI:.3g}"


def gpu_rows(nodes: Iterable[NodeBars]) -> tuple[GpuRow, ...]:
    """Rows of all GPUs; a row has either existing GPUs, or new ones of one shape."""
    rows: dict[object, GpuRow] = {}
    for node in nodes:
        for bar in node.bars:
            sorted_bar = GpuBar(bar.before, _largest_first(bar.after))
            look = (
                tuple(each.milli for each in bar.before),
                tuple((each.what, each.milli) for each in sorted_bar.after),
            )
            row = rows.setdefault(
                (node.shape, node.kind, look), GpuRow(sorted_bar, node.new, node.shape, labels=[{} for _ in bar.after])
            )
            row.gpus += 1
            row.nodes[node.name] = None
            for names, segment in zip(row.labels, sorted_bar.after, strict=True):
                names[segment.label] = None
    return tuple(sorted(rows.values(), key=lambda row: row.order))


def _largest_first(after: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """Segments of existing pods keep their place."""
    return tuple(sorted(after, key=lambda each: (each.what is Part.PLANNED, -each.milli * (each.what is Part.PLANNED))))

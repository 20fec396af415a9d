"""GPUs as bars filled with shares, before and after the demand is met; equal ones as one row."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from plimsoll.cluster.ledger import GpuAccount, GpuLedger
from plimsoll.cluster.pods import PodShare
from plimsoll.packing import GPU_MILLI, Milli
from plimsoll.plan.demand import DemandPlan
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


def gpu_picture(ledger: GpuLedger, plan: DemandPlan) -> tuple[NodeBars, ...]:
    """Nodes that get pods first, then those in use, then new ones; without nodes that are entirely free."""
    pods = {uid: each for demand in plan.demands for uid, each in demand.pods.items()}
    placed = {node.node: node.devices for node in plan.places}
    existing = [
        _of_account(account, placed.get(account.node.name, ()), pods) for account in ledger.accounts() if account.gpus
    ]
    shown = [each for each in existing if each.changed or any(bar.before for bar in each.bars)]
    new = []
    for number, node in enumerate(plan.nodes, start=1):
        held = [*node.held, *[()] * (node.gpus - len(node.held))]
        bars = tuple(GpuBar((), tuple(_planned(pods[uid], node.gpu_memory_mib) for uid in uids)) for uids in held)
        shape = f"{node.node_pool}/{node.instance_type}"
        new.append(NodeBars(f"new {number}", node.kind, bars, shape))
    return (*sorted(shown, key=lambda each: (not each.changed, each.name)), *new)


def _planned(each: PodShare, memory_mib: int | None) -> Segment:
    milli = each.share.milli_of(memory_mib) if memory_mib else each.share.milli
    return Segment(milli or 0, Part.PLANNED, f"{each.pod.namespace}/{each.pod.name}")


def _of_account(account: GpuAccount, placed: Sequence[Sequence[str]], pods: Mapping[str, PodShare]) -> NodeBars:
    """In the order of the account's free thousandths: GPU groups, free GPUs, allocated whole GPUs."""
    before: list[tuple[Segment, ...]] = [
        (Segment(group.used_milli, Part.USED, ", ".join(group.pods) or f"group {group.name}"),)
        for group in account.groups
    ]
    before += [()] * account.free_gpus
    before += [(Segment(GPU_MILLI, Part.USED, "whole"),)] * account.whole
    planned = [[_planned(pods[uid], account.memory_mib) for uid in uids if uid in pods] for uids in placed]
    added = planned or [[] for _ in before]
    bars = tuple(GpuBar(was, (*was, *more)) for was, more in zip(before, added, strict=False))
    return NodeBars(account.node.name, account.kind, bars)


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

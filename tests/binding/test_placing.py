"""A share gets the place that a comparison with every node finds, and so do the others after it."""

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.bind.planning import (
    HostRoom,
    NoFit,
    ShareAssignment,
    SharePlacer,
    claimed,
    new_groups,
    unsuitable_because,
)
from plimsoll.cluster.ledger import GpuAccount, GpuLedger
from plimsoll.cluster.pods import read_request
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.kai import GPUShare
from plimsoll.packing import GPU_MILLI
from tests.binding.cluster import SETTINGS, Cluster, a_gpu_node, a_share

Closed = Collection[tuple[str, str]]


def place_plainly(
    accounts: Iterable[GpuAccount], room: HostRoom, pod: Pod, share: GPUShare, paused: Collection[str], closed: Closed
) -> ShareAssignment | NoFit:
    """The smallest of all fits, in the order: new GPUs, capacity left, free GPUs, name of the node."""
    fits, lacks = list[Any](), Counter[str]()
    for account in accounts:
        name, fit = account.node.name, None
        lack = unsuitable_because(account, pod)
        if not lack and (share.memory_mib is None or account.memory_mib is not None):
            milli = share.milli_of(account.memory_mib or 0)
            joined = sorted(
                (group.free_milli, group.name)
                for group in account.groups
                if group.joinable
                and group.free_milli >= milli
                and (account.taken <= account.gpus or group.gpu)
                and (name, group.name) not in closed
            )[: share.devices]
            new = share.devices - len(joined)
            if milli <= GPU_MILLI and new <= (0 if name in paused else account.free_gpus):
                lack = room.lacks(account, pod, new=new)
                left = sum(free - milli for free, _ in joined) + new * (GPU_MILLI - milli)
                fit = None if lack else (new, left, account.free_gpus, name, [group for _, group in joined])
        if fit:
            fits.append(fit)
        else:
            lacks[lack or f"without {share} free"] += 1
    if fits:
        new, _, _, name, joined = min(fits)
        return ShareAssignment(name, tuple(sorted([*joined, *new_groups(pod, name, new)])))
    why = ", ".join(f"{count} {lack}" for lack, count in sorted(lacks.items()))
    return NoFit(f"0/{sum(lacks.values())} nodes are available{f': {why}' if why else ''}")


def a_labelled_node(number: int, gpus: int, memory: int, cpu: str, zone: str) -> Node:
    node = a_gpu_node(f"n{number}", gpus, cpu=cpu, memory=memory)
    return node.model_copy(update={"labels": {**node.labels, "zone": zone}})


_nodes = st.lists(
    st.tuples(
        st.integers(0, 3), st.sampled_from([24000, 81000]), st.sampled_from(["1", "3", "16"]), st.sampled_from("ab")
    ),
    max_size=6,
)
_size = st.one_of(
    st.sampled_from(["0.2", "0.3334", "0.5", "0.9"]).map(lambda fraction: {"fraction": fraction}),
    st.sampled_from(["5000", "12000", "30000"]).map(lambda memory: {"fraction": None, "memory": memory}),
)
_shares = st.lists(
    st.tuples(_size, st.integers(1, 2), st.sampled_from(["0", "500m", "2"]), st.sampled_from(["", "", "a"])),
    max_size=10,
)


def read(shares: list[Any], prefix: str) -> list[Pod]:
    return [
        a_share(f"{prefix}{number}", **size, devices=devices, cpu=cpu, selector={"zone": zone} if zone else None)
        for number, (size, devices, cpu, zone) in enumerate(shares)
    ]


@settings(max_examples=150, deadline=None)
@given(_nodes, _shares, _shares, st.sets(st.sampled_from(["n0", "n1", "n2"])), st.integers(0, 3))
def test_every_share_gets_the_best_of_all_places(
    nodes: list[Any], bound: list[Any], pending: list[Any], paused: set[str], closing: int
) -> None:
    cluster = Cluster([a_labelled_node(number, *each) for number, each in enumerate(nodes)])
    cluster.add(*read(bound, "bound"))
    cluster.settle()
    ledger = GpuLedger(waits=lambda _: True)
    ledger.update(cluster.nodes, [pod for pod in cluster.pods.values() if pod.node_name])
    groups = sorted((account.node.name, group.name) for account in ledger.accounts() for group in account.groups)
    closed = frozenset(groups[:closing])
    room = HostRoom(ledger, SETTINGS.reservation)
    placer = SharePlacer(ledger.accounts(), room, paused, closed)
    refused: dict[str, NoFit] = {}
    for pod, request in zip(read(pending, "pending"), map(str, pending), strict=True):
        share = read_request(pod).share
        assert share is not None
        found = placer.place(pod, share)
        plain = place_plainly(ledger.accounts(), room, pod, share, paused, closed)
        if isinstance(plain, NoFit):
            # Equal requests after it get the same message, although other nodes may lack something else by then.
            assert found == refused.setdefault(request, plain)
        else:
            assert found == plain
        if isinstance(found, ShareAssignment):
            ledger.put_pod(claimed(pod, found))
            account = ledger.account(found.node)
            assert account is not None
            placer.replace(account)


def test_pods_whose_requests_all_differ_are_not_compared_with_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    lacks = HostRoom.lacks

    def counted(room: HostRoom, account: GpuAccount, pod: Pod, **given: Any) -> str:
        compared.append(account.node.name)
        return lacks(room, account, pod, **given)

    monkeypatch.setattr(HostRoom, "lacks", counted)
    cluster = Cluster([a_gpu_node(f"n{number:02}") for number in range(40)])
    cluster.add(*[a_share(f"p{number:02}", f"0.{500 + number}", cpu=f"{number}m") for number in range(30)])
    assert len(cluster.plan().steps) == 30
    assert len(compared) == 30


def test_a_share_in_mib_joins_the_gpu_of_which_it_leaves_least_whatever_the_memory() -> None:
    """It takes 480 of the 500 thousandths that are free on the GPU of 40,000 MiB, and 240 of 300 on that of 80,000."""
    nodes = [a_gpu_node("small", 1, memory=40_000), a_gpu_node("large", 1, memory=80_000)]
    cluster = Cluster([node.model_copy(update={"labels": {**node.labels, "size": node.name}}) for node in nodes])
    cluster.add(a_share("half", "0.5", selector={"size": "small"}), a_share("most", "0.7", selector={"size": "large"}))
    cluster.settle()
    cluster.add(a_share("mib", None, memory="19200"))
    cluster.settle()
    assert cluster.pods["team", "mib"].node_name == "small"

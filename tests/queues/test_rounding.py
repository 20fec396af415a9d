"""What shares count in a queue, by the arithmetic of KAI's scheduler in Go, which is the same with Python's floats."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.queues import Amount, QueueGate, QueueLoad, counted
from plimsoll.model.kai import GPUShare, Queue
from plimsoll.packing import exact_milli
from tests.queues.manifests import amounts, queue

SHARED_MIB = st.sampled_from([15300, 16300, 23000, 24500, 40900, 46000, 81500, 81900, 143700, 183300])
"""Of T4 to B200: labels of GPU Feature Discovery, rounded down to hundreds."""


def compared_by_kai(share_mib: int, gpu_mib: int) -> float:
    """`getGpuMemoryFractionalOnNode`."""
    return math.ceil(share_mib / gpu_mib * 100) / 100


@given(hundredths=st.integers(1, 99), devices=st.integers(1, 8), gpu_mib=SHARED_MIB)
def test_a_fraction(hundredths: int, devices: int, gpu_mib: int) -> None:
    fraction = hundredths / 100
    share = GPUShare(milli=exact_milli(hundredths, 100), devices=devices)
    found = counted(share, hundredths * 10)
    assert found.milli == hundredths * 10 * devices
    compared = max(hundredths * devices / 100, compared_by_kai(int(fraction * gpu_mib), gpu_mib))
    assert (found.milli + found.rounding) / 1000 == compared


@given(share_mib=st.integers(1, 15300), devices=st.integers(1, 8), gpu_mib=SHARED_MIB)
def test_memory(share_mib: int, devices: int, gpu_mib: int) -> None:
    share = GPUShare(memory_mib=share_mib, devices=devices)
    found = counted(share, exact_milli(share_mib, gpu_mib))
    assert found.milli == round(compared_by_kai(share_mib, gpu_mib) * 1000) * devices
    assert found.rounding == 0


@pytest.mark.parametrize(
    ("fraction", "placed", "compared"),
    [("0.55", 550, 560), ("0.45", 450, 450), ("0.333", 330, 340), ("0.125", 130, 130), ("0.004", 0, 10)],
)
def test_fractions_that_are_not_hundredths_or_floats(fraction: str, placed: int, compared: int) -> None:
    milli = exact_milli(Fraction(fraction))
    found = counted(GPUShare(milli=milli), milli)
    assert (found.milli, found.milli + found.rounding) == (placed, compared)


def test_tensor_fusion_counts_exactly() -> None:
    share = GPUShare(memory_mib=10, by_tensor_fusion=True)
    assert counted(share, Fraction(1, 3)) == (Fraction(1, 3), 0)


@pytest.mark.parametrize("preemptible", [True, False])
def test_a_share_is_compared_rounded_up_and_counts_as_it_is(preemptible: bool) -> None:
    gate = QueueGate(
        [Queue.read(queue("q", gpu=amounts(1, 1 if preemptible else 2)))],
        {"q": QueueLoad.of(Amount(450), preemptible=preemptible)},
    )
    assert gate.why_not("q", Amount(550), preemptible, 10)
    assert gate.admit("q", Amount(540), preemptible, 10) == ""
    assert gate.admit("q", Amount(10), preemptible) == ""
    assert gate.why_not("q", Amount(10), preemptible)

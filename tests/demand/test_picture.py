"""The rows of a picture: equal GPUs are one row, and every GPU is in a row."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cli.picture import GpuBar, NodeBars, Part, Segment, gpu_rows


def part(what: Part, milli: int, label: str) -> Segment:
    return Segment(milli, what, label)


SHARES = st.lists(st.sampled_from([100, 250, 300]), max_size=3)
BARS = st.builds(
    lambda used, planned: GpuBar(
        tuple(part(Part.USED, milli, "there") for milli in used[:1]),
        (
            *(part(Part.USED, milli, "there") for milli in used[:1]),
            *(part(Part.PLANNED, milli, f"team/{number}") for number, milli in enumerate(planned)),
        ),
    ),
    SHARES,
    SHARES,
)
NODES = st.lists(
    st.builds(
        lambda name, bars, shape: NodeBars(name, "A100", tuple(bars), shape),
        st.text("abc", min_size=1, max_size=2),
        st.lists(BARS, min_size=1, max_size=4),
        st.sampled_from(["", "pool/type"]),
    ),
    max_size=8,
)


def look(bar: GpuBar, shape: str) -> tuple[object, ...]:
    before = tuple(each.milli for each in bar.before)
    return shape, before, tuple(sorted((each.what, each.milli) for each in bar.after))


@given(NODES)
def test_every_gpu_is_in_the_row_of_equal_gpus(nodes: list[NodeBars]) -> None:
    rows = gpu_rows(nodes)
    wanted = Counter(look(bar, node.shape) for node in nodes for bar in node.bars)
    assert Counter({look(row.bar, row.shape): row.gpus for row in rows}) == wanted
    assert len(rows) == len(wanted)
    named = {name for row in rows for name in row.nodes}
    assert named == {node.name for node in nodes}


def test_many_gpus_are_few_rows_and_a_row_names_its_pods() -> None:
    nodes = [
        NodeBars(f"new {number}", "A100", (GpuBar((), (part(Part.PLANNED, 600, f"team/{number}"),)),) * 2, "pool/type")
        for number in range(1000)
    ]
    (row,) = gpu_rows(nodes)
    assert (row.gpus, row.where) == (2000, "new pool/type")
    assert row.title(0) == "team/0, team/1, team/2, team/3, team/4 and 995 more: 0.6"


def test_the_order_is_gpus_that_get_pods_then_new_ones_then_unchanged_ones() -> None:
    used = part(Part.USED, 500, "there")
    stays = NodeBars("stays", "A100", (GpuBar((used,), (used,)),) * 8)
    takes = NodeBars("takes", "A100", (GpuBar((used,), (used, part(Part.PLANNED, 100, "team/a"))),))
    new = NodeBars("new 1", "A100", (GpuBar((), ()), GpuBar((), (part(Part.PLANNED, 100, "team/b"),))), "pool/type")
    assert [(row.where, row.gpus, bool(row.bar.after)) for row in gpu_rows([stays, new, takes])] == [
        ("takes", 1, True),
        ("new pool/type", 1, True),
        ("new pool/type", 1, False),
        ("stays", 8, True),
    ]

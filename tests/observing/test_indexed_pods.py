"""What is looked for among pods is kept while pods change, and is what a look at each of them finds."""

from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.pods import bound_pods, marked_pods
from plimsoll.labels import SHARD, WORKSPACE
from plimsoll.model.cluster import Pod
from plimsoll.observe.cluster import Stores

NAMES = ("a", "b", "node-scale-adjuster-x", "kaito-workspace-y")


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, dict[str, Any] | None]:
    """A pod's name, and what it is now; None: gone."""
    name = draw(st.sampled_from(NAMES))
    if draw(st.integers(0, 4)) == 0:
        return name, None
    manifest = {
        "metadata": {
            "name": name,
            "namespace": "team",
            "labels": draw(st.sampled_from([{}, {"app": "x"}, {SHARD: "0"}, {WORKSPACE: "w"}])),
            "annotations": {"gpu-fraction": "0.5"},
        },
        "spec": {
            "nodeName": draw(st.sampled_from(["", "one", "two"])),
            "schedulingGates": [{"name": "held"}] if draw(st.booleans()) else [],
            "containers": [{"name": "main"}],
        },
        "status": {"phase": draw(st.sampled_from(["Pending", "Running", "Succeeded"]))},
    }
    return name, manifest


def by_name(pods: Iterable[Pod]) -> list[Pod]:
    return sorted(pods, key=lambda pod: pod.name)


@given(st.lists(st.lists(changes(), max_size=4), max_size=6))
def test_the_index_does_not_depend_on_what_was_known_before(
    rounds: list[list[tuple[str, dict[str, Any] | None]]],
) -> None:
    stores = Stores()
    for several in rounds:
        for name, manifest in several:
            entry = None if manifest is None else stores.pods.read(manifest)[1]
            stores.pods.put(("team", name), entry)
        pods = stores.snapshot().pods
        plain = tuple(pods)
        assert by_name(marked_pods(pods)) == by_name(marked_pods(plain))
        bound, expected = bound_pods(pods), bound_pods(plain)
        assert {node: by_name(bound[node]) for node in bound} == {node: by_name(expected[node]) for node in expected}

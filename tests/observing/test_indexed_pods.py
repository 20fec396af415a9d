"""The index of pods, updated incrementally, equals one that is built from all pods."""

from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.pods import bound_pods, marked_pods, ruled_pods
from plimsoll.labels import SHARD, WORKSPACE
from plimsoll.model.cluster import Pod
from plimsoll.observe.cluster import Stores

TERM = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
APART = {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}
NAMES = ("a", "b", "node-scale-adjuster-x", "kaito-workspace-y")


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, dict[str, Any] | None]:
    """A pod's name and its new value; None: it was deleted."""
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
            "affinity": {"podAntiAffinity": APART} if draw(st.booleans()) else {},
        },
        "status": {"phase": draw(st.sampled_from(["Pending", "Running", "Succeeded"]))},
    }
    return name, manifest


def by_name(pods: Iterable[Pod]) -> list[Pod]:
    return sorted(pods, key=lambda pod: pod.name)


@given(st.lists(st.lists(changes(), max_size=4), max_size=6))
def test_the_incremental_index_equals_a_new_one(
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
        assert by_name(ruled_pods(pods)) == by_name(pod for pod in plain if pod.rules)
        bound, expected = bound_pods(pods), bound_pods(plain)
        assert {node: by_name(bound[node]) for node in bound} == {node: by_name(expected[node]) for node in expected}

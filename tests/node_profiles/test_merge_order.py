"""Of several sources of a fact on nodes, live nodes count first, then what was learned, declared, and the catalog."""

from typing import Any

import pytest

from plimsoll.cluster.catalog import OfferedTypes
from plimsoll.cluster.nodes import index_of
from plimsoll.cluster.pools import PoolProfiles
from plimsoll.cluster.profiles import Source
from plimsoll.model.api import KnownNodeProfile
from tests.builders import a_node_profile, a_snapshot
from tests.node_profiles.cluster import FAMILY, FEATURE, PRODUCT, TYPE, learn, pool_node, pool_of, profile_of

LIVE = pool_node(labels={FAMILY: "from-live"}, cpu="1", host_memory="1Gi")
LEARNED = {
    "labels": {PRODUCT: "NVIDIA-L4", "nvidia.com/gpu.count": "1", "nvidia.com/gpu.memory": "23034", FAMILY: "learned"},
    "allocatable": {"cpu": "2", "memory": "2Gi", "nvidia.com/gpu": "1"},
}
DECLARED: dict[str, Any] = {"labels": {FAMILY: "declared"}, "allocatable": {"cpu": "3", "memory": "3Gi"}}
BOTH = a_node_profile("gpu", TYPE, learned=LEARNED, **DECLARED)


@pytest.mark.parametrize(
    ("objects", "source", "family", "cpu_milli", "memory_mib"),
    [
        ((LIVE, BOTH), Source.LIVE, "from-live", 1000, 1024),
        ((BOTH,), Source.LEARNED, "learned", 2000, 2048),
        ((a_node_profile("gpu", TYPE, **DECLARED),), Source.DECLARED, "declared", 3000, 3072),
    ],
)
def test_the_first_source_that_says_something_counts(
    objects: tuple[Any, ...], source: Source, family: str, cpu_milli: int, memory_mib: int
) -> None:
    found = profile_of(pool_of(), *objects)
    assert (found.source, found.labels[FAMILY]) == (source, family)
    assert (found.cpu_milli, found.memory_mib) == (cpu_milli, memory_mib)


def test_without_another_source_the_catalog_counts() -> None:
    found = profile_of(pool_of())
    assert (found.source, found.labels[FAMILY]) == (Source.CATALOG, "ada-lovelace")
    assert found.cpu_milli > 0


def test_what_is_declared_is_filled_up_from_the_catalog() -> None:
    """A declared label stands beside those of the type; the spec of the NodeProfile counts before the template."""
    found = profile_of(
        pool_of(labels={FAMILY: "template", FEATURE: "true"}), a_node_profile("gpu", TYPE, labels={FAMILY: "spec"})
    )
    assert (found.labels[PRODUCT], found.labels[FAMILY], found.labels[FEATURE]) == ("NVIDIA-L4", "spec", "true")


@pytest.mark.parametrize(
    "other",
    [a_node_profile("other", TYPE, learned=LEARNED, **DECLARED), a_node_profile("gpu", "g5.xlarge", **DECLARED)],
)
def test_a_profile_of_another_node_pool_or_type_says_nothing(other: KnownNodeProfile) -> None:
    assert profile_of(pool_of(), other) == profile_of(pool_of())


def test_amounts_of_nodes_in_other_node_pools_count_before_the_catalog_only() -> None:
    """Another NodePool may have another node class, with other reservations of the kubelet."""
    other = pool_node("other", "other", cpu="1")
    assert profile_of(pool_of(), other).cpu_milli == 1000
    assert profile_of(pool_of(), other, pool_node(cpu="2")).cpu_milli == 2000
    assert profile_of(pool_of(), other, a_node_profile("gpu", TYPE, **DECLARED)).cpu_milli == 3000
    assert profile_of(pool_of(), other, a_node_profile("gpu", TYPE, learned=LEARNED)).cpu_milli == 2000


def test_each_amount_is_of_the_first_source_that_has_it() -> None:
    learned = {**LEARNED, "allocatable": {"memory": "2Gi"}}
    found = profile_of(
        pool_of(), a_node_profile("gpu", TYPE, learned=learned, allocatable={"cpu": "3", "memory": "9Gi"})
    )
    assert (found.cpu_milli, found.memory_mib) == (3000, 2048)


def test_an_instance_type_is_the_same_whatever_its_case() -> None:
    found = profile_of(pool_of(), a_node_profile("gpu", TYPE.upper(), **DECLARED))
    assert found.labels[FAMILY] == "declared"


def test_what_was_learned_counts_when_the_last_node_is_gone_and_deleting_it_forgets() -> None:
    shared = pool_node(labels={"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"})
    (learned,) = learn([shared]).values()
    there, gone, forgotten = (profile_of(pool_of(), *each) for each in ((shared, learned), (learned,), ()))
    assert there.device == gone.device
    assert (there.divided != "", gone.divided != "", forgotten.divided) == (True, True, "")
    assert (gone.source, forgotten.source) == (Source.LEARNED, Source.CATALOG)


@pytest.mark.parametrize(
    ("template", "source"),
    [
        ({}, Source.LEARNED),
        ({FAMILY: "learned"}, Source.LEARNED),
        ({FEATURE: "true"}, Source.LEARNED),
        ({FAMILY: "changed"}, Source.DECLARED),
        ({"team": "other"}, Source.LEARNED),
    ],
)
def test_what_was_learned_before_the_template_changed_counts_no_more(template: dict[str, str], source: Source) -> None:
    """Only labels of discovery that the template declares otherwise than what was seen make it outdated."""
    found = profile_of(pool_of(labels=template), a_node_profile("gpu", TYPE, learned=LEARNED))
    assert found.source is source
    if FAMILY in template:
        assert found.labels[FAMILY] == template[FAMILY]


def test_workspaces_and_shares_read_the_template_that_changed_alike() -> None:
    template = {PRODUCT: "NVIDIA-L4", "nvidia.com/gpu.count": "1", "nvidia.com/gpu.memory": "20000"}
    objects = pool_of(labels=template), a_node_profile("gpu", TYPE, learned=LEARNED)
    snapshot = a_snapshot(*objects)
    offered = OfferedTypes(snapshot, index_of(snapshot.nodes)).find(TYPE)
    assert offered is not None
    assert offered.gpus is not None
    assert offered.gpus.memory_mib == profile_of(*objects).device.memory_mib == 20000


def test_learned_amounts_go_with_learned_labels_when_the_template_changed() -> None:
    outdated = a_node_profile("gpu", TYPE, learned=LEARNED, allocatable={"cpu": "3"})
    assert profile_of(pool_of(labels={FAMILY: "changed"}), outdated).cpu_milli == 3000


@pytest.mark.parametrize("status", [{}, {"learned": None}, {"learned": {}}, {"written": "by another version"}])
def test_objects_of_another_version_are_read(status: dict[str, Any]) -> None:
    manifest = {"metadata": {"name": "p"}, "spec": {"nodePool": "gpu", "instanceType": TYPE}, "status": status}
    known = KnownNodeProfile.read(manifest)
    assert (known.spec.labels, known.spec.allocatable) == ({}, {})
    assert profile_of(pool_of(), known).device == profile_of(pool_of()).device


def test_fields_of_a_newer_version_in_the_status_are_ignored() -> None:
    manifest = {
        "metadata": {"name": "p"},
        "spec": {"nodePool": "gpu", "instanceType": TYPE, "labels": {FAMILY: "declared"}},
        "status": {"learned": {**LEARNED, "numa": 2}, "observed": 3},
    }
    assert profile_of(pool_of(), KnownNodeProfile.read(manifest)).source is Source.LEARNED


@pytest.mark.parametrize(
    "labels",
    [
        {"nvidia.com/gpu.count": "0"},
        {"nvidia.com/gpu.count": "many"},
        {"nvidia.com/gpu.memory": "0"},
        {"nvidia.com/gpu.memory": "some"},
        {"nvidia.com/gpu.replicas": "x"},
    ],
)
def test_a_type_is_skipped_with_the_label_that_is_declared_wrongly(labels: dict[str, str]) -> None:
    for objects in ((pool_of(), a_node_profile("gpu", TYPE, labels=labels)), (pool_of(labels=labels),)):
        found = PoolProfiles(a_snapshot(*objects))
        assert not (*found.shapes, *found.divided)
        assert any(key in warning and TYPE in warning for key in labels for warning in found.warnings)


def test_what_was_learned_without_gpus_counts_not() -> None:
    """Someone else wrote the status: the controller learns of nodes with complete discovery only."""
    labels = {key: value for key, value in LEARNED["labels"].items() if "count" not in key}
    stated: list[dict[str, Any]] = [{"labels": labels}, {"labels": {}}, {"allocatable": {"cpu": "2"}}]
    for learned in stated:
        assert profile_of(pool_of(), a_node_profile("gpu", TYPE, learned=learned)) == profile_of(pool_of())

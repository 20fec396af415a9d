"""The disk that new nodes have by their EC2NodeClass or AKSNodeClass: what needs more is refused."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.model import Reason, Verdict
from plimsoll.model.api import KnownNodeProfile
from plimsoll.model.karpenter import AksNodeClass, Ec2NodeClass
from plimsoll.plan import plan, validate
from tests.builders import NC24, a_node_pool, a_snapshot, a_workspace, an_environment

G6E = "g6e.12xlarge"
"""4 x L40S, 3,800 GB of NVMe disks."""
P3 = "p3.8xlarge"
"""4 x V100, no local disk."""
GIB = 1024
NOW = datetime(2026, 1, 1, tzinfo=UTC)
REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}


def a_class(name: str = "gpu", **spec: Any) -> Ec2NodeClass:
    return Ec2NodeClass.read({"metadata": {"name": name}, "spec": spec})


def a_volume(size: str | None, device: str = "/dev/xvda", **fields: Any) -> dict[str, Any]:
    return {"deviceName": device, "ebs": {"volumeSize": size} if size else {"snapshotID": "snap-1"}, **fields}


def judged(
    *objects: Any,
    instance_type: str = G6E,
    preset: str = "gpt-oss-120b",
    ref: Mapping[str, str] = REF,
    **environment: Any,
) -> Verdict:
    pool = a_node_pool("gpu", [instance_type])
    pool = pool.model_copy(update={"template_spec": pool.template_spec | {"nodeClassRef": ref}})
    workspace = a_workspace(instance_type=instance_type, preset=preset)
    [verdict] = validate(a_snapshot(workspace, pool, *objects, environment=an_environment(nap=True, **environment)))
    return verdict


@pytest.mark.parametrize(
    ("spec", "gib"),
    [
        ({"blockDeviceMappings": [a_volume("100Gi")], "amiFamily": "AL2023"}, 89),
        ({"blockDeviceMappings": [a_volume("100Gi")], "amiSelectorTerms": [{"alias": "al2023@v1"}]}, 89),
        ({"blockDeviceMappings": [a_volume("4Gi"), a_volume("50Gi", "/dev/xvdb")], "amiFamily": "Bottlerocket"}, 44),
        ({"blockDeviceMappings": [a_volume("4Gi"), a_volume("50Gi", "/dev/sdx", rootVolume=True)]}, 44),
        ({"amiFamily": "AL2"}, 17),
        ({"blockDeviceMappings": [a_volume("500Gi", "/dev/sdx")], "amiFamily": "AL2023"}, 17),
        ({"amiSelectorTerms": [{"id": "ami-1"}, {"alias": "bottlerocket@latest"}]}, 17),
    ],
)
def test_the_volume_with_the_files_of_pods(spec: dict[str, Any], gib: int) -> None:
    assert a_class(**spec).disk_mib(3539.0) == gib * GIB


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"amiFamily": "Custom", "blockDeviceMappings": [a_volume("100Gi")]},
        {"amiSelectorTerms": [{"id": "ami-1"}]},
        {"amiFamily": "AL2023", "blockDeviceMappings": [a_volume(None)]},
        {"amiFamily": "AL2023", "blockDeviceMappings": [a_volume("large")]},
    ],
)
def test_what_the_node_class_does_not_say_is_not_known(spec: dict[str, Any]) -> None:
    assert a_class(**spec).disk_mib(0) is None
    verdict = judged(a_class(**spec), instance_type=P3, preset="phi-4-mini-instruct")
    assert verdict.accepted, verdict.message


def test_local_disks_in_place_of_the_volume() -> None:
    local = a_class(amiFamily="AL2023", instanceStorePolicy="RAID0")
    assert local.disk_mib(1000.0) == 899 * GIB
    assert local.disk_mib(0) == 17 * GIB, "a type without such disks has the volume"
    assert local.disk_mib(None) is None


@pytest.mark.parametrize(
    ("kubelet", "mib"),
    [
        ({"kubeReserved": {"ephemeral-storage": "3Gi"}, "systemReserved": {"ephemeral-storage": "1Gi"}}, 86 * GIB),
        ({"evictionHard": {"nodefs.available": "15%"}}, 84 * GIB),
        ({"evictionHard": {"nodefs.available": "5Gi"}}, 94 * GIB),
        ({"evictionHard": {"nodefs.available": "100%"}}, 99 * GIB),
        ({"kubeReserved": {"cpu": "1"}, "evictionHard": {"memory.available": "5%"}}, 89 * GIB),
    ],
)
def test_what_the_kubelet_keeps(kubelet: dict[str, Any], mib: int) -> None:
    node_class = a_class(amiFamily="AL2023", blockDeviceMappings=[a_volume("100Gi")], kubelet=kubelet)
    assert node_class.disk_mib(0) == mib


@given(size=st.integers(1, 16_384), larger=st.integers(1, 1000))
def test_a_larger_volume_has_more(size: int, larger: int) -> None:
    def disk(gib: int) -> int:
        found = a_class(amiFamily="AL2023", blockDeviceMappings=[a_volume(f"{gib}Gi")]).disk_mib(0)
        assert found is not None
        return found

    assert 0 <= disk(size) <= size * GIB
    assert disk(size) <= disk(size + larger)


def test_files_beyond_the_volume_are_refused_before_anything_is_bought() -> None:
    verdict = judged(a_class(amiFamily="AL2023", blockDeviceMappings=[a_volume("50Gi")]))
    assert verdict.reason is Reason.INVALID_SPEC
    for named in ("EC2NodeClass gpu", "44.00 GiB", "140.00 GiB", "blockDeviceMappings", "instanceStorePolicy"):
        assert named in verdict.message


def test_no_advice_of_disks_that_the_type_does_not_have() -> None:
    verdict = judged(a_class(amiFamily="AL2023"), instance_type=P3, preset="phi-4-mini-instruct")
    assert verdict.reason is Reason.INVALID_SPEC
    assert "instanceStorePolicy" not in verdict.message


@pytest.mark.parametrize(
    "spec",
    [
        {"blockDeviceMappings": [a_volume("240Gi")]},
        {"instanceStorePolicy": "RAID0"},
    ],
)
def test_a_disk_that_holds_them(spec: dict[str, Any]) -> None:
    verdict = judged(a_class(amiFamily="AL2023", **spec))
    assert verdict.accepted, verdict.message


def test_a_static_node_pool_requests_no_disk() -> None:
    """Karpenter then launches the node: only the files must fit."""
    volume = a_class(amiFamily="AL2023", blockDeviceMappings=[a_volume("100Gi")])
    assert not judged(volume).accepted
    assert judged(volume, provisioner="static-nodepool").accepted
    small = a_class(amiFamily="AL2023", blockDeviceMappings=[a_volume("60Gi")])
    assert not judged(small, provisioner="static-nodepool").accepted


@pytest.mark.parametrize(
    ("source", "gib"),
    [
        (None, 140),
        ({"emptyDir": {}}, 140),
        ({"emptyDir": {"medium": "Memory"}}, 80),
        ({"hostPath": {"path": "/models"}}, 80),
    ],
)
def test_a_node_claim_requests_the_files_where_they_are_on_the_disk(source: dict[str, Any] | None, gib: int) -> None:
    weights = {} if source is None else {"weights": {"volumeSource": source}}
    environment = an_environment(nap=True, **weights)
    snapshot = a_snapshot(a_workspace(instance_type=G6E, preset="gpt-oss-120b"), environment=environment)
    [claim] = plan(snapshot, validate(snapshot), NOW).creations
    assert claim.manifest["spec"]["resources"]["requests"]["ephemeral-storage"] == f"{gib}Gi"


def test_files_on_a_volume_need_no_disk() -> None:
    small = a_class(amiFamily="AL2023", blockDeviceMappings=[a_volume("100Gi")])
    refused = judged(small)
    assert refused.reason is Reason.INVALID_SPEC
    assert "inference.weights" in refused.message
    assert judged(small, weights={"volumeSource": {"nfs": {"server": "s", "path": "/m"}}}).accepted


def test_only_the_node_class_of_the_nodes_counts() -> None:
    assert judged(a_class("others", amiFamily="AL2023")).accepted


AKS_REF = {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "gpu"}


def an_aks_class(name: str = "gpu", **spec: Any) -> AksNodeClass:
    return AksNodeClass.read({"metadata": {"name": name}, "spec": spec})


@pytest.mark.parametrize(
    ("gigabytes", "accepted"),
    # 140 GiB are 150.3 GB, of which Karpenter subtracts nothing.
    [(128, False), (150, False), (151, True), (2048, True), (None, True)],
)
def test_the_os_disk_of_an_aks_node_class(gigabytes: int | None, accepted: bool) -> None:
    classes = an_aks_class(osDiskSizeGB=gigabytes), an_aks_class("other", osDiskSizeGB=30)
    verdict = judged(*classes, instance_type=NC24, ref=AKS_REF)
    assert verdict.accepted == accepted, verdict.message
    if not accepted:
        assert verdict.reason is Reason.INVALID_SPEC
        assert "osDiskSizeGB of AKSNodeClass gpu to 151 or more" in verdict.message


def test_a_node_class_of_another_provider_with_the_same_name_says_nothing() -> None:
    assert judged(an_aks_class(osDiskSizeGB=30)).accepted


def test_what_a_node_profile_says_counts_more() -> None:
    spec = {"nodePool": "gpu", "instanceType": G6E, "allocatable": {"ephemeral-storage": "300Gi"}}
    profile = KnownNodeProfile.read({"metadata": {"name": "gpu"}, "spec": spec})
    assert judged(a_class(amiFamily="AL2023"), profile).accepted

"""NodePools of GPU nodes: stable templates, time for discovery, consistent limits, taints."""

from typing import Any

import pytest

from tests.policy_rules.manifests import GPU, a_node_pool, broken, findings, with_path

AFTER = "spec.disruption.consolidateAfter"
LIMIT = f"spec.limits[{GPU}]"


def test_a_valid_pool_violates_no_rule() -> None:
    assert broken(a_node_pool()) == []


@pytest.mark.parametrize(
    ("after", "wrong"),
    [("0s", True), ("30s", True), ("4m59s", True), ("5m", False), ("1h30m", False), ("Never", False), (None, True)],
)
def test_consolidation_leaves_time_for_discovery(after: str | None, wrong: bool) -> None:
    pool = a_node_pool(spec__disruption__consolidateAfter=after)
    assert broken(pool) == ([("node-pool-consolidation", AFTER)] if wrong else [])


def test_how_much_time_is_an_option() -> None:
    pool = a_node_pool(spec__disruption__consolidateAfter="30s")
    assert broken(pool, rules={"node-pool-consolidation": {"options": {"minimumSeconds": 20}}}) == []


def test_pools_without_gpus_and_static_ones_are_not_consolidated_too_early() -> None:
    cpu = a_node_pool("m5.large", spec__disruption__consolidateAfter="0s", spec__limits=None, spec__template__spec={})
    assert broken(cpu) == []
    static = a_node_pool(spec__disruption=None, spec__replicas=2, spec__limits={"nodes": 2})
    assert broken(static) == []


@pytest.mark.parametrize(
    ("types", "limit", "expected"),
    [
        (("p4d.24xlarge",), 4, [("node-pool-limits-fit", LIMIT)]),
        (("p4d.24xlarge",), "4", [("node-pool-limits-fit", LIMIT)]),
        (("p4d.24xlarge",), 8, []),
        (("p4d.24xlarge", "g5.xlarge"), 4, [("node-pool-limits-fit", LIMIT)]),
        (("g5.xlarge",), 4, []),
        (("p4d.24xlarge",), 12, [("node-pool-limit-remainder", LIMIT)]),
        (("unknown.type",), 4, []),
        (("p4d.24xlarge",), 0, []),
    ],
)
def test_limits_are_checked_against_the_gpus_of_a_node(
    types: tuple[str, ...], limit: Any, expected: list[tuple[str, str]]
) -> None:
    assert broken(a_node_pool(*types, gpu_limit=limit)) == expected


@pytest.mark.parametrize(
    "key", ["karpenter.k8s.aws/instance-gpu-count", "karpenter.azure.com/sku-gpu-count", "nvidia.com/gpu.count"]
)
def test_limits_fit_the_count_that_is_required(key: str) -> None:
    requirements = [{"key": key, "operator": "In", "values": ["8"]}]
    pool = a_node_pool(gpu_limit=4, spec__template__spec__requirements=requirements)
    assert broken(pool) == [("node-pool-limits-fit", LIMIT)]


def test_a_static_pools_limit_is_no_less_than_its_replicas() -> None:
    pool = a_node_pool(spec__replicas=3, spec__limits={"nodes": 2})
    assert broken(pool) == [("node-pool-limits-fit", "spec.limits.nodes")]


@pytest.mark.parametrize("part", ["labels", "annotations"])
@pytest.mark.parametrize(
    ("key", "value", "wrong"),
    [
        ("built", "2026-07-01T10:00:00Z", True),
        ("built", "2026-07-01 10:00:00", True),
        ("built", "Wed, 01 Jul 2026 10:00:00 GMT", True),
        ("example.org/deployed-at", "now", True),
        ("kubectl.kubernetes.io/restartedAt", "x", True),
        ("epoch", "1782900000", True),
        ("config", "9f86d081884c7d659a2feaa0c55ad015", True),
        ("git-sha", "9f86d08", True),
        ("checksum/config", "abc", True),
        ("run", "123e4567-e89b-12d3-a456-426614174000", True),
        ("nvidia.com/gfd.timestamp", "1", True),
        ("team", "research", False),
        ("gpus", "8", False),
        ("retire-after", "2027-01-01", False),
        ("version", "1.2.3", False),
        ("karpenter.sh/do-not-disrupt", "true", False),
        ("word", "deadbeefdeadbeefcafe", False),
    ],
)
def test_templates_have_no_values_that_change(part: str, key: str, value: str, wrong: bool) -> None:
    pool = a_node_pool()
    pool["spec"]["template"]["metadata"][part] = {key: value}
    assert [rule for rule, _ in broken(pool)] == ["node-pool-template-lasting"] * wrong


def test_the_field_of_a_template_is_named() -> None:
    pool = a_node_pool(spec__template__metadata__annotations={"example.org/built-by": "x", "hash": "y"})
    assert broken(pool) == [("node-pool-template-lasting", "spec.template.metadata.annotations.hash")]


@pytest.mark.parametrize(
    ("taints", "wrong"),
    [
        ([{"key": GPU, "effect": "NoSchedule"}], False),
        ([{"key": "sku", "value": "gpu", "effect": "NoExecute"}], False),
        ([{"key": GPU, "effect": "PreferNoSchedule"}], True),
        ([], True),
        (None, True),
    ],
)
def test_gpu_nodes_are_tainted(taints: Any, wrong: bool) -> None:
    pool = a_node_pool(spec__template__spec__taints=taints)
    assert broken(pool) == ([("node-pool-gpu-taint", "spec.template.spec.taints")] if wrong else [])


def test_which_taints_count_is_an_option() -> None:
    pool = with_path(a_node_pool(), spec__template__spec__taints=[{"key": "team", "effect": "NoSchedule"}])
    assert broken(pool) == []
    rules = {"node-pool-gpu-taint": {"options": {"keys": [GPU]}}}
    (found,) = findings(pool, rules=rules)
    assert f"add {GPU}" in found.message


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("karpenter.k8s.aws/instance-category", ["g", "p"]),
        ("karpenter.k8s.aws/instance-family", ["p5"]),
        ("karpenter.k8s.aws/instance-category", ["p"]),
        ("karpenter.azure.com/sku-family", ["N"]),
        ("karpenter.k8s.aws/instance-gpu-manufacturer", ["nvidia"]),
        ("nvidia.com/gpu.product", ["NVIDIA-A100-SXM4-80GB"]),
        ("karpenter.k8s.aws/instance-family", ["g4ad"]),
        ("karpenter.k8s.gcp/instance-family", ["a3"]),
        ("karpenter.k8s.gcp/instance-gpu-count", ["8"]),
        ("cloud.google.com/gke-accelerator", ["nvidia-l4"]),
        ("node.kubernetes.io/instance-type", ["Standard_ND96isr_MI300X_v5"]),
        ("beta.amd.com/gpu.family.AI", ["8"]),
        ("gpu.intel.com/product", ["Max_1550"]),
    ],
)
def test_a_gpu_pool_is_detected_by_its_requirements(key: str, values: list[str]) -> None:
    requirements = [{"key": key, "operator": "In", "values": values}]
    pool = a_node_pool(spec__limits=None, spec__template__spec={"requirements": requirements})
    assert [rule for rule, _ in broken(pool)] == ["node-pool-gpu-taint"]


@pytest.mark.parametrize(
    "change",
    [
        {"spec__limits": {"amd.com/gpu": "8"}},
        {"spec__limits": {"gpu.intel.com/xe": "8"}},
        {"spec__template__metadata": {"labels": {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}}},
        {"spec__template__spec": {"taints": [{"key": "gpu.intel.com/i915", "effect": "PreferNoSchedule"}]}},
    ],
)
def test_a_pool_of_amd_or_intel_is_detected_by_what_it_declares(change: dict[str, Any]) -> None:
    plain: dict[str, Any] = {
        "spec__limits": None,
        "spec__template__spec": {},
        "spec__disruption__consolidateAfter": "0s",
    }
    assert broken(a_node_pool(**plain)) == []
    rules = [rule for rule, _ in broken(a_node_pool(**{**plain, **change}))]
    assert rules == ["node-pool-consolidation", "node-pool-gpu-taint"]


@pytest.mark.parametrize("with_pool", [True, False])
def test_node_pools_that_demand_names_exist_where_any_are_declared(with_pool: bool) -> None:
    shared = {"nodePool": "gpus", "resource": f"{GPU}.shared", "replicas": 4}
    demand = {"placement": {"*": "spread", "gpux": "spread"}, "sharedDevices": [shared, {**shared, "nodePool": "none"}]}
    environment = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Environment",
        "metadata": {"name": "prod"},
        "spec": {"demand": demand},
    }
    pool = with_path(a_node_pool(), metadata__name="gpus")
    named = [(each.field, "gpus" in each.message) for each in findings(environment, *([pool] if with_pool else []))]
    unknown = [("spec.demand.placement.gpux", True), ("spec.demand.sharedDevices[1].nodePool", False)]
    assert named == (unknown if with_pool else [])

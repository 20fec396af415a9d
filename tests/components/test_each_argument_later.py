"""Each argument of each component, and a part of it, one at a time, as an Output: secret, unknown, or of None."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import pulumi
import pytest

from plimsoll.components import (
    CapacityGate,
    Controller,
    DataCache,
    DeviceClass,
    Environment,
    Foundation,
    GpuDiscovery,
    Guard,
    Monitoring,
    NodePool,
    NodeProfile,
    Queue,
    QueueAdmission,
    ResourceClaimTemplate,
    ShareBinder,
    Topology,
    TrainingRuntime,
    Workspace,
)
from tests.components.declaring import HIDDEN, declared
from tests.components.templates import REPLICATED_JOBS

Path = tuple[str | int, ...]

JOB: dict[str, Any] = {
    "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
    "spec": {
        "template": {
            "metadata": {"labels": {"team": "vision"}},
            "spec": {"containers": [{"name": "node", "image": "own:1", "resources": {"limits": {"memory": "2048Mi"}}}]},
        }
    },
}
SAMPLES: dict[Callable[..., Any], dict[str, Any]] = {
    CapacityGate: {"namespaces": ["a"], "queues": ["b"], "whole_gpus": True},
    Controller: {
        "image": "own:1",
        "replicas": 3,
        "backend": "s3://state",
        "passphrase": {"name": "state", "key": "words"},
        "shards": 2,
        "pre_started": 2,
        "lease_duration": 30.0,
        "lease_renew_deadline": 20.0,
        "lease_retry_period": 2.0,
        "env": {"AWS_REGION": "eu"},
        "pod_labels": {"team": "ml"},
        "resources": {"cpu": "1", "memory": "1Gi", "memory_limit": "2Gi"},
        "priority_class_name": "high",
        "node_selector": {"pool": "system"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
        "termination_grace_period_seconds": 60,
        "network_policy": True,
        "egress_ports": [443, 9000],
        "metrics_port": 9999,
        "health_probe_port": 9998,
        "scraper": {"namespace": "monitoring", "pod_labels": {"app": "prometheus"}},
        "ui": {
            "replicas": 2,
            "proxy": {"namespace": "ingress", "pod_labels": {"app": "proxy"}},
            "resources": {"cpu": "1"},
            "env": {"A": "b"},
            "service_account_annotations": {"role": "x"},
        },
    },
    DataCache: {
        "name": "cache-1",
        "namespace": "ml",
        "table": {"metadata_location": "s3://m", "schema_name": "s", "table_name": "t"},
        "workers": 2,
        "queue": "research",
        "topology": "racks",
        "level": "rack",
        "required": False,
        "image": "own:1",
        "head": {"cpu": "1", "memory": "1Gi"},
        "worker": {"cpu": "2", "memory": "2Gi"},
        "node_selector": {"pool": "gpu"},
        "tolerations": [{"key": "gpu", "operator": "Exists", "toleration_seconds": 5}],
        "scheduler_name": "own-kai",
    },
    Environment: {
        "name": "prod",
        "patch_force": True,
        "node_auto_provisioning": "enabled",
        "provisioner": "nodeclaim",
        "limits": {"gpus": 3, "nodes": 4},
        "access": [{"namespaces": ["a", "*"], "queues": ["q"], "gpus": 8}],
        "node_claims": {"taints": [{"key": "gpu", "effect": "NoSchedule"}], "capacity_type": "spot"},
        "catalog": {"prices": {"p4d.24xlarge": 32.5}},
        "estimator": {"utilization_by_product": {"H100": 0.9}},
        "policies": {"rules": {"image-tag-pinned": {"severity": "off"}}},
        "presets": [
            {
                "name": "own",
                "aliases": ["x"],
                "repository": "o/own",
                "size_gib": 3.0,
                "config": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4},
            }
        ],
        "demand": {"schedulers": ["kai-scheduler"], "gpu_tflops": {"H100": 900.0}},
    },
    Foundation: {
        "labels": {"team": "ml"},
        "service_account_annotations": {"role": "x"},
        "trigger_namespace": "waiting",
        "served_namespaces": ["a", "b"],
    },
    GpuDiscovery: {
        "auto_provisioning": True,
        "existing": {"gfd": ["a/b"]},
        "pool_taints": [{"key": "gpu", "value": "x", "effect": "NoSchedule"}],
        "chart": "./chart",
        "gfd": {"mode": "on", "no_timestamp": False, "sleep_interval": "30s"},
        "nfd": "off",
        "mig_strategy": "single",
        "config": {"map": {"a": "version: v1"}, "default": "a"},
        "runtime_class_name": "nvidia",
        "tolerations": [{"key": "own", "operator": "Exists"}],
        "node_selector": {"pool": "gpu"},
        "affinity": {"nodeAffinity": {}},
        "image": {"repository": "own", "tag": "1", "pull_policy": "Always"},
        "image_pull_secrets": ["pull"],
        "device_list_strategy": "envvar",
        "cdi": {"nvidia_hook_path": "/usr/bin/nvidia-ctk"},
    },
    Guard: {"name": "kept", "layer": "environment", "explanation": "No."},
    Monitoring: {
        "namespace": "monitoring",
        "labels": {"release": "prometheus"},
        "pod_monitor": True,
        "pod_labels": {"app": "plimsoll"},
        "dashboard": True,
        "dashboard_labels": {"grafana": "1"},
        "trigger_pending_seconds": 60,
        "node_claim_failure_rate": 0.2,
        "scaling_seconds": 300,
        "plan_seconds": 240,
        "cleanup_failures": 1,
    },
    NodePool: {
        "name": "pool-1",
        "requirements": [{"key": "a", "operator": "In", "values": ["x", "y"], "min_values": 1}],
        "node_class_ref": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "own"},
        "labels": {"team": "ml", "kind": "gpu"},
        "annotations": {"note": "x"},
        "taints": [{"key": "gpu", "value": "x", "effect": "NoSchedule"}],
        "startup_taints": [{"key": "driver", "effect": "NoExecute"}],
        "limits": {"nvidia.com/gpu": "16"},
        "disruption": {
            "consolidation_policy": "WhenEmpty",
            "consolidate_after": "20m",
            "budgets": [{"nodes": "1", "reasons": ["Empty"], "schedule": "@daily", "duration": "8h"}],
        },
        "expire_after": "Never",
        "termination_grace_period": "10m",
        "weight": 3,
    },
    NodeProfile: {
        "name": "gpu-l4",
        "node_pool": "gpu",
        "instance_type": "g6.xlarge",
        "labels": {"nvidia.com/gpu.family": "ada-lovelace"},
        "allocatable": {"cpu": "3500m"},
    },
    DeviceClass: {
        "name": "big-gpu",
        "selectors": [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}],
        "config": [{"opaque": {"driver": "gpu.nvidia.com", "parameters": {"kind": "GpuConfig"}}}],
        "extended_resource_name": "example.com/big-gpu",
    },
    ResourceClaimTemplate: {
        "name": "one-gpu",
        "namespace": "team",
        "labels": {"team": "ml"},
        "metadata": {"labels": {"of": "claim"}, "annotations": {"note": "x"}},
        "devices": {
            "requests": [
                {
                    "name": "gpu",
                    "exactly": {
                        "device_class_name": "big-gpu",
                        "selectors": [{"cel": {"expression": "true"}}],
                        "count": 2,
                        "tolerations": [{"key": "gpu", "operator": "Equal", "value": "x", "effect": "NoSchedule"}],
                        "capacity": {"requests": {"memory": "10Gi"}},
                    },
                }
            ],
            "constraints": [{"requests": ["gpu"], "match_attribute": "resource.kubernetes.io/pcieRoot"}],
        },
    },
    Queue: {
        "labels": {"kai.scheduler/node-pool": "north"},
        "name": "queue-1",
        "patch_force": False,
        "write_all_amounts": False,
        "display_name": "Q",
        "parent_queue": "root",
        "priority": 200,
        "resources": {"gpu": {"quota": 2, "limit": 4, "over_quota_weight": 2}, "cpu": {"quota": 1000}},
        "preempt_min_runtime": "10m",
    },
    QueueAdmission: {"leaves": ["a", "b"], "parents": ["root"], "action": "audit"},
    ShareBinder: {
        "image": "plimsoll:1",
        "replicas": 3,
        "namespace": "shares",
        "service_account": "own",
        "scheduler_name": "s",
        "device_variables": True,
    },
    Topology: {"name": "racks", "levels": [{"node_label": "block", "alias": "b"}, {"node_label": "rack"}]},
    TrainingRuntime: {
        "name": "torch-1",
        "namespace": "ml",
        "labels": {"framework": "torch"},
        "ml_policy": {"num_nodes": 2, "torch": {"num_proc_per_node": "4"}},
        "pod_group_policy": {"kai_scheduler": {"queue": "research"}},
        "template": {"spec": {"replicated_jobs": [{**REPLICATED_JOBS[1], "template": JOB}]}},
        "near": {"match_labels": {"app": "cache"}, "topology_key": "rack", "required": False},
        "scheduler_name": "own-kai",
        "kai_scheduler_field": True,
    },
    Workspace: {
        "name": "w-1",
        "namespace": "serving",
        "labels": {"team": "ml"},
        "resource": {"count": 2, "label_selector": {"match_labels": {"a": "b"}}, "instance_type": "x"},
        "inference": {
            "preset": {"name": "phi-4", "preset_options": {"model_access_secret": "token"}},
            "replicas": 2,
            "adapters": [
                {"source": {"name": "lora", "image": "own:1", "image_pull_secrets": ["s"]}, "strength": "1.0"}
            ],
            "config": "tuned",
            "service": {"enabled": True, "port": 81},
        },
        "queue": "research",
    },
}


class Case(NamedTuple):
    component: Callable[..., Any]
    path: Path

    def with_output(self, wrap: Callable[[Any], Any]) -> dict[str, Any]:
        replaced: dict[str, Any] = _replaced(SAMPLES[self.component], self.path, wrap)
        return replaced


def places(args: dict[str, Any]) -> Iterator[Path]:
    """Where an Output may be: at each argument, and at one part deep in it. What is between is lifted alike."""
    for name, value in args.items():
        yield (name,)
        if (deepest := max(parts(value, (name,)), key=len)) != (name,):
            yield deepest


def parts(value: Any, path: Path) -> Iterator[Path]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from parts(item, (*path, key))


CASES = [Case(component, path) for component, args in SAMPLES.items() for path in places(args)]


def _replaced(value: Any, path: Path, wrap: Callable[[Any], Any]) -> Any:
    if not path:
        return wrap(value)
    copied: Any = dict(value) if isinstance(value, dict) else list(value)
    copied[path[0]] = _replaced(copied[path[0]], path[1:], wrap)
    return copied


@pytest.fixture(scope="module", autouse=True)
def _one_small_definition() -> Iterator[None]:
    """No argument has a part in the definitions, of which a foundation declares over a megabyte, nor in the policies of
    the rules, which are half of its objects; golden files cover them."""
    small = {"metadata": {"name": "environments.plimsoll.dev"}, "spec": {"group": "plimsoll.dev", "versions": []}}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("plimsoll.components.foundation.definitions", lambda: [small])
        patched.setattr("plimsoll.components.foundation.rule_policies", dict)
        yield


@cache
def plain(component: Callable[..., Any]) -> list[Any]:
    return objects(component, SAMPLES[component])


def objects(component: Callable[..., Any], args: dict[str, Any]) -> list[Any]:
    """The declared objects, without the resources' own names and without empty fields."""
    found = [without_empty(each["inputs"]) for each in declared(lambda: component("it", args))]
    return sorted(found, key=lambda each: str(sorted(each.get("metadata", each).items())))


def outcome(component: Callable[..., Any], args: dict[str, Any]) -> list[Any] | str:
    """The objects, or why there are none."""
    try:
        return objects(component, args)
    except pulumi.RunError as error:
        return str(error)


def without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: without_empty(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in (None, {})}
    return [without_empty(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.component.__name__}.{'.'.join(map(str, case.path))}")
def test_an_output_has_the_effect_of_its_value_or_is_refused_by_name(case: Case) -> None:
    secret = outcome(case.component, case.with_output(pulumi.Output.secret))
    unknown = outcome(case.component, case.with_output(lambda _: pulumi.Output.from_input(pulumi.UNKNOWN)))
    if isinstance(secret, str):
        assert secret == unknown
        assert str(case.path[0]) in secret
        assert "is an Output, but it determines which objects are declared" in secret
        return
    assert secret == plain(case.component)
    assert HIDDEN in str(unknown) or unknown == secret, "it has no part in the objects"
    if not isinstance(case.path[-1], str):
        return
    absent = outcome(case.component, case.with_output(lambda _: None))
    if isinstance(absent, list):
        late = outcome(case.component, case.with_output(lambda _: pulumi.Output.from_input(None)))
        assert late == absent or "env: an Output is None, and this list has no item for it" in late

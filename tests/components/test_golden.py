"""The complete objects that each component declares. A change of a golden file is a change for every user."""

from typing import Any

import pulumi
import pytest

from plimsoll.components import (
    CapacityGate,
    ClusterTrainingRuntime,
    Controller,
    DataCache,
    DeviceClass,
    Environment,
    Foundation,
    GpuDiscovery,
    Monitoring,
    NodePool,
    NodePoolArgs,
    NodeProfile,
    NodeProfileArgs,
    Queue,
    QueueAdmission,
    ResourceClaimTemplate,
    ShareBinder,
    Topology,
    TrainingRuntime,
    Workspace,
    WorkspaceArgs,
)
from tests.components.declaring import assert_golden, declared, manifest
from tests.components.templates import TORCH

RACK = "cloud.provider.com/topology-rack"
KWOK: NodePoolArgs = {"node_class_ref": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass"}}


def _foundation() -> None:
    Foundation("plimsoll", {"labels": {"team": "gpu"}})


def _environment() -> None:
    Environment(
        "prod",
        {
            "node_auto_provisioning": "enabled",
            "limits": {"gpus": 64},
            "access": [{"namespaces": ["research"], "queues": [], "gpus": 8}],
            "node_claims": {"node_class_ref": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass"}},
        },
    )


def _queue() -> None:
    parent = Queue("research", {"display_name": "Research", "resources": {"gpu": {"quota": 8, "limit": 16}}})
    Queue("inference", {"parent_queue": parent.queue_name, "priority": 200, "labels": {"team": "gpu"}})


def _node_pool() -> None:
    NodePool(
        "gpu",
        {
            **KWOK,
            "requirements": [
                {"key": "nvidia.com/gpu.product", "operator": "Exists"},
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"], "min_values": 1},
            ],
            "labels": {"team": "gpu"},
            "taints": [{"key": "sku", "value": "gpu"}],
            "startup_taints": [{"key": "nvidia.com/driver", "effect": "NoExecute"}],
            "limits": {"nvidia.com/gpu": "16"},
            "disruption": {"budgets": [{"nodes": "0", "schedule": "@daily", "duration": "8h"}]},
            "expire_after": "Never",
            "weight": 10,
        },
    )


def _node_profile() -> None:
    args: NodeProfileArgs = {
        "node_pool": "gpu",
        "instance_type": "g6.xlarge",
        "labels": {"nvidia.com/gpu.product": "NVIDIA-L4-SHARED", "nvidia.com/gpu.replicas": "4"},
        "allocatable": {"cpu": "3500m", "nvidia.com/gpu": "4"},
    }
    NodeProfile("l4", args)


def _device_class_and_claims() -> None:
    memory = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('70Gi')) >= 0"
    sharing: dict[str, Any] = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig"}
    large = DeviceClass(
        "large-gpu",
        {
            "selectors": [
                {"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}},
                {"cel": {"expression": memory}},
            ],
            "config": [{"opaque": {"driver": "gpu.nvidia.com", "parameters": sharing}}],
            "extended_resource_name": "example.com/large-gpu",
        },
    )
    pair = {"name": "pair", "device_class_name": "gpu.nvidia.com", "count": 2}
    one = {"name": "one", "device_class_name": large.device_class_name}
    ResourceClaimTemplate(
        "large-or-two",
        {
            "namespace": "team",
            "labels": {"app": "server"},
            "metadata": {"labels": {"app": "server"}},
            "devices": {
                "requests": [{"name": "gpus", "first_available": [one, pair]}],  # type: ignore[typeddict-item]
                "constraints": [{"requests": ["gpus/pair"], "match_attribute": "gpu.nvidia.com/productName"}],
            },
        },
    )


def _static_node_pool() -> None:
    NodePool(
        "fixed",
        {**KWOK, "replicas": 3, "limits": {"nodes": "4"}, "disruption": {"budgets": [{"nodes": "1"}]}},
    )


def _capacity_gate() -> None:
    CapacityGate("gate", {"namespaces": ["research", "serving"]})


def _capacity_gate_of_queues() -> None:
    CapacityGate("gate", {"namespaces": ["research"], "queues": ["training", "notebooks"]})


def _monitoring() -> None:
    Monitoring("alerts", {"labels": {"release": "prometheus"}, "scaling_seconds": 300})


def _controller() -> None:
    Controller(
        "controller",
        {
            "image": "registry.example/plimsoll:1",
            "backend": "s3://states/prod?region=eu-central-1",
            "passphrase": {"name": "plimsoll"},
            "env": {"AWS_REGION": "eu-central-1"},
            "priority_class_name": "system-cluster-critical",
        },
    )


def _controller_with_ui() -> None:
    Controller(
        "controller",
        {
            "image": "registry.example/plimsoll:1",
            "backend": "s3://states/prod?region=eu-central-1",
            "passphrase": {"name": "plimsoll"},
            "tolerations": [{"key": "system", "operator": "Exists"}],
            "scraper": {"namespace": "monitoring"},
            "ui": {
                "proxy": {"namespace": "oauth2-proxy", "pod_labels": {"app.kubernetes.io/name": "oauth2-proxy"}},
                "env": {"AWS_REGION": "eu-central-1"},
                "service_account_annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/plimsoll-ui"},
            },
        },
    )


def _workspace() -> None:
    Workspace(
        "phi",
        {
            "namespace": "inference",
            "labels": {"team": "gpu"},
            "resource": {"label_selector": {"match_labels": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}}},
            "inference": {"preset": {"name": "phi-4"}, "replicas": 2, "gpu_memory_gib": 30.5},
            "queue": "inference",
        },
    )


def _workspace_with_template() -> None:
    Workspace(
        "own",
        {
            "resource": {"instance_type": "p5.48xlarge"},
            "inference": {"template": {"spec": {"containers": [{"name": "main", "image": "own:1"}]}}},
        },
    )


def _training_runtime() -> None:
    TrainingRuntime(
        "torch",
        {
            "namespace": "vision",
            "ml_policy": {"num_nodes": 2, "torch": {"num_proc_per_node": "auto"}},
            "pod_group_policy": {"kai_scheduler": {"queue": "research"}},
            "template": TORCH,
        },
    )


def _cluster_training_runtime() -> None:
    ClusterTrainingRuntime(
        "torch",
        {
            "labels": {"trainer.kubeflow.org/framework": "torch"},
            "ml_policy": {"torch": {"num_proc_per_node": "8"}},
            "pod_group_policy": {"kai_scheduler": {"queue": "research"}},
            "template": TORCH,
            "kai_scheduler_field": True,
        },
    )


def _topology() -> None:
    Topology("cluster", {"levels": [{"node_label": RACK, "alias": "rack"}, {"node_label": "kubernetes.io/hostname"}]})


def _data_cache_and_its_training() -> None:
    cache = DataCache(
        "images-cache",
        {
            "namespace": "vision",
            "table": {"metadata_location": "s3://datasets/m.json", "schema_name": "vision", "table_name": "images"},
            "queue": "vision",
            "topology": "cluster",
            "level": RACK,
            "tolerations": [{"key": "sku", "value": "gpu"}],
        },
    )
    TrainingRuntime(
        "torch",
        {
            "namespace": "vision",
            "pod_group_policy": {"kai_scheduler": {"queue": "vision"}},
            "template": TORCH,
            "near": cache.near,
        },
    )


def _queue_admission() -> None:
    QueueAdmission("queues", {"leaves": ["vision", "audio"], "parents": ["research"], "action": "deny"})


def _share_binder() -> None:
    ShareBinder("share-binder", {"image": "registry.example.com/plimsoll:0.2.0"})


def _gpu_discovery() -> None:
    GpuDiscovery("gpu-discovery", {"auto_provisioning": False, "pool_taints": [{"key": "sku", "value": "gpu"}]})


def _gpu_discovery_with_everything() -> None:
    GpuDiscovery(
        "gpu-discovery",
        {
            "auto_provisioning": True,
            "chart": "oci://charts.example/charts/nvidia-device-plugin",
            "version": "0.18.0",
            "namespace": "kube-system",
            "create_namespace": False,
            "gfd": {"mode": "on", "no_timestamp": True, "sleep_interval": "30s"},
            "nfd": "off",
            "mig_strategy": "mixed",
            "config": {"map": {"shared": "version: v1\n"}, "default": "shared"},
            "runtime_class_name": "nvidia",
            "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "gpu"}],
            "node_selector": {"gpu": "yes"},
            "affinity": {"nodeAffinity": {}},
            "image": {"repository": "charts.example/device-plugin", "tag": "v0.18.0"},
            "image_pull_secrets": ["pull"],
            "device_list_strategy": "cdi-cri",
            "cdi": {"nvidia_hook_path": "/usr/bin/nvidia-ctk"},
        },
    )


@pytest.mark.parametrize(
    "program",
    [
        _foundation,
        _environment,
        _queue,
        _node_pool,
        _node_profile,
        _device_class_and_claims,
        _static_node_pool,
        _capacity_gate,
        _capacity_gate_of_queues,
        _controller,
        _controller_with_ui,
        _monitoring,
        _workspace,
        _workspace_with_template,
        _training_runtime,
        _cluster_training_runtime,
        _topology,
        _data_cache_and_its_training,
        _queue_admission,
        _share_binder,
        _gpu_discovery,
        _gpu_discovery_with_everything,
    ],
)
def test_component_declares_the_objects_of_its_golden_file(program: Any) -> None:
    assert_golden(program.__name__.strip("_"), declared(program))


def test_a_binder_on_an_older_cluster_mutates_nothing() -> None:
    made = declared(lambda: ShareBinder("share-binder", {"device_variables": False}))
    assert not [each["name"] for each in made if "Mutating" in each["type"]]


def test_without_an_image_no_binder_is_deployed() -> None:
    made = declared(lambda: ShareBinder("share-binder", {}))
    assert not [each["name"] for each in made if each["type"].endswith(":Deployment")]


def test_a_workspace_has_no_empty_maps() -> None:
    args: WorkspaceArgs = {"resource": {"label_selector": {}}, "inference": {"preset": {"name": "phi-4"}}}
    spec = manifest(declared(lambda: Workspace("w", args)), "Workspace")["spec"]
    assert spec == {"inference": {"preset": {"name": "phi-4"}}}


def test_a_run_with_mocks_leaves_no_settings_behind() -> None:
    before = pulumi.get_stack()
    declared(_queue, stack="another")
    assert pulumi.get_stack() == before

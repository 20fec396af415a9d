"""Arguments that components refuse, with the field that the refusal is about."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import pytest

from plimsoll.components import (
    ClusterTrainingRuntime,
    Controller,
    DeviceClass,
    Environment,
    Foundation,
    GpuDiscovery,
    Guard,
    NodePool,
    NodeProfile,
    Queue,
    ResourceClaimTemplate,
    ShareBinder,
    Topology,
    TrainingRuntime,
    Workspace,
)
from plimsoll.errors import InvalidObjectError
from tests.components.declaring import declared

NAME: Final = "it"
_PROFILE: Final = {"node_pool": "gpu", "instance_type": "g6.xlarge"}
_PRESET: Final = {"preset": {"name": "phi-4"}}
_CONTROLLER: Final = {"image": "plimsoll:1", "backend": "s3://states", "passphrase": {"name": "plimsoll"}}
_TEMPLATE: Final = {"template": {"spec": {"containers": [{"name": "main", "image": "own:1"}]}}}
_NODE_CLASS: Final = {"node_class_ref": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass"}}
_VOLCANO: Final = {"spec": {"schedulerName": "volcano", "containers": [{"name": "node"}]}}
_RUNTIME: Final = {
    "pod_group_policy": {"kai_scheduler": {"queue": "research"}},
    "template": {"spec": {"replicated_jobs": [{"name": "node", "template": {"spec": {"template": _VOLCANO}}}]}},
}


_GPU: Final = {"device_class_name": "gpu.nvidia.com"}


class Refused(NamedTuple):
    """`field` starts the message after the object's kind and name. `object` stands for several fields together."""

    component: Callable[..., Any]
    args: Mapping[str, Any]
    field: str
    given: Mapping[str, Any] = {}
    """Further arguments, which do not affect the result."""

    @property
    def kind(self) -> str:
        return self.component.__name__

    def message(self) -> str:
        with pytest.raises(InvalidObjectError) as caught:
            declared(lambda: self.component(NAME, {**self.given, **self.args}))
        return str(caught.value)


def _controller(field: str, **args: Any) -> Refused:
    return Refused(Controller, {**_CONTROLLER, **args}, field)


def _workspace(field: str, **args: Any) -> Refused:
    return Refused(Workspace, args, field)


def _queue(field: str, **args: Any) -> Refused:
    return Refused(Queue, args, field)


def _node_pool(field: str, **args: Any) -> Refused:
    return Refused(NodePool, args, field, _NODE_CLASS)


def _discovery(field: str, **args: Any) -> Refused:
    return Refused(GpuDiscovery, args, field)


def _claim(field: str, request: Any, **devices: Any) -> Refused:
    """A claim with that request, of the name `gpu` if it has none."""
    args = {"devices": {"requests": [{"name": "gpu", **request}], **devices}}
    return Refused(ResourceClaimTemplate, args, f"devices{field}")


REFUSED: Final = (
    _controller("backend", backend="file:///var/lib/states"),
    _controller("backend", backend="s3://"),
    _controller("set either backend or stateClaim", state_claim="states"),
    _controller("set passphrase or", secrets_provider="awskms://alias/plimsoll?region=eu-central-1"),
    _controller("lease_duration", lease_duration=float("inf")),
    _controller("env", env={"PULUMI_BACKEND_URL": "s3://others"}),
    _controller("service_account_annotations", service_account_annotations={"role": "of the Foundation"}),
    _controller("network_policy", network_policy="false"),
    _controller("egress_ports", egress_ports=[]),
    _controller("egress_ports[0]", egress_ports=[70_000]),
    Refused(Foundation, {"trigger_namespaces": "waiting"}, "trigger_namespaces"),
    Refused(Foundation, {"trigger_namespace": "Not a name"}, "trigger_namespace"),
    *(
        Refused(Foundation, {"served_namespaces": namespaces}, field)
        for namespaces, field in (
            ([], "served_namespaces"),
            (["team", "*"], "served_namespaces[1]"),
            (["kube-system"], "served_namespaces[0]: is a namespace of the cluster"),
            (["team", "team"], "served_namespaces: names a namespace twice"),
            (["plimsoll-triggers"], "servedNamespaces names"),
        )
    ),
    Refused(ShareBinder, {"scheduler": "own"}, "scheduler"),
    Refused(Guard, {}, "layer"),
    Refused(Guard, {"layer": "foundation", "environment": "prod", "explanation": "No."}, "environment has no effect"),
    Refused(NodeProfile, {"node_pool": "gpu"}, "instanceType"),
    Refused(NodeProfile, {**_PROFILE, "labels": {"nvidia.com/gpu.product": "NVIDIA L4"}}, "labels"),
    Refused(NodeProfile, {**_PROFILE, "allocatable": {"cpu": "many"}}, "allocatable.cpu"),
    Refused(DeviceClass, {"selectors": [{"cel": {"expression": ""}}]}, "selectors[0].cel.expression"),
    Refused(DeviceClass, {"config": [{"opaque": {"driver": "gpu.nvidia.com"}}]}, "config[0].opaque.parameters"),
    Refused(DeviceClass, {"extended_resource_name": "gpu"}, "extended_resource_name"),
    Refused(DeviceClass, {"extended_resource_name": "kubernetes.io/gpu"}, "extended_resource_name"),
    Refused(ResourceClaimTemplate, {}, "devices"),
    Refused(ResourceClaimTemplate, {"devices": {"requests": []}}, "devices.requests"),
    _claim(".requests[0]", {}),
    _claim(".requests[0]", {"exactly": _GPU, "first_available": [{"name": "a", **_GPU}]}),
    _claim(".requests[0].exactly.deviceClassName", {"exactly": {}}),
    _claim(".requests[0].exactly.count", {"exactly": {**_GPU, "count": 0}}),
    _claim(".requests[0].exactly", {"exactly": {**_GPU, "count": 2, "allocation_mode": "All"}}),
    _claim(
        ".requests[0].exactly.capacity.requests.memory",
        {"exactly": {**_GPU, "capacity": {"requests": {"memory": "x"}}}},
    ),
    _claim(
        ".requests[0].exactly.tolerations[0]",
        {"exactly": {**_GPU, "tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}},
    ),
    _claim(".requests[0]", {"first_available": [{"name": "a", **_GPU}, {"name": "a", **_GPU}]}),
    _claim(
        ": constraints[0].requests",
        {"exactly": _GPU},
        constraints=[{"requests": ["other"], "match_attribute": "a.b/c"}],
    ),
    _claim(".constraints[0]", {"exactly": _GPU}, constraints=[{"requests": ["gpu"]}]),
    _claim(".constraints[0].match_attribute", {"exactly": _GPU}, constraints=[{"match_attribute": "productName"}]),
    Refused(Topology, {"levels": [{"node_label": "kubernetes.io/hostname"}, {"node_label": "rack"}]}, "levels"),
    _workspace("inference.replica", inference={**_PRESET, "replica": 1}),
    _workspace("inference.replicas", inference={**_PRESET, "replicas": -1}),
    _workspace("inference.gpuMemoryGiB", inference={**_PRESET, "gpuMemoryGiB": 0}),
    _workspace("inference", inference={**_PRESET, **_TEMPLATE}),
    _workspace("inference", inference={}),
    _workspace("resource.labelSelector.matchLabels", resource={"labelSelector": {"matchLabels": {"a b": "c"}}}),
    _queue("resources.gpu", resources={"gpu": {"quota": 2, "limit": 1}}),
    _queue("resources.gpu.quota", resources={"gpu": {"quota": -2}}),
    _queue("parent", parent="x"),
    _node_pool("labels: nvidia.com/gfd.timestamp", labels={"nvidia.com/gfd.timestamp": "1"}),
    _node_pool("labels: built", labels={"built": "2026-01-31T10-00-00"}),
    _node_pool("labels: started", labels={"started": "1767225600"}),
    _node_pool("annotations: commit", annotations={"commit": "0123456789abcdef0123456789abcdef01234567"}),
    _node_pool("annotations: config-checksum", annotations={"config-checksum": "any"}),
    _node_pool("annotations: run", annotations={"run": "9f1c2d3e-4b5a-4c6d-8e7f-0a1b2c3d4e5f"}),
    _node_pool("limits", limits={"nvidia.com/gpu": "many"}),
    _node_pool("limits: cpu", limits={"cpu": "-1"}),
    _node_pool("requirements[0]", requirements=[{"key": "a", "operator": "In"}]),
    _node_pool("requirements[0]", requirements=[{"key": "a", "operator": "Gt", "values": ["x"]}]),
    _node_pool("disruption.consolidate_after", disruption={"consolidate_after": "soon"}),
    _node_pool("weight", replicas=2, weight=3),
    _node_pool("a static pool", replicas=2, limits={"cpu": "4"}),
    Refused(NodePool, {}, "nodeClassRef"),
    Refused(TrainingRuntime, _RUNTIME, "template.spec.replicatedJobs[0].template.spec.template.spec.schedulerName"),
    Refused(ClusterTrainingRuntime, {"namespace": "vision"}, "namespace", _RUNTIME),
    Refused(Environment, {"node_auto_provisioning": "disabled", "provisioner": "nodeclaim"}, "provisioner"),
    Refused(Environment, {"policies": {"rules": {"image-digest": {"options": {"required": "true"}}}}}, "policies"),
    _discovery("version", version=">=0.17"),
    _discovery("version", version="0.17"),
    _discovery("repository", chart="oci://charts.example/a", repository="https://charts.example"),
    _discovery("namespace", namespace="default"),
    _discovery("namespace", namespace="default", create_namespace=False),
    _discovery("gfd.mode", gfd={"mode": "perhaps"}),
    _discovery("gfd.sleep_interval", gfd={"sleep_interval": "30"}),
    _discovery("config", config={"default": "a", "map": {"b": "version: v1"}}),
    _discovery("mig_strategy", mig_strategy="all"),
    _discovery("pool_taints: effect", pool_taints=[{"key": "a", "effect": "Never"}]),
)

"""Files are checked as far as rules read them: each kind that a rule names is read."""

import json

import pytest
import yaml

from plimsoll.policy import RULES, is_read
from tests.claims.objects import DRIVER, a_claim, a_class, asked
from tests.command import plimsoll
from tests.policy_rules.manifests import a_node_pool, a_pod, with_path

VERSIONS = {
    "Workspace": "plimsoll.dev/v1alpha1",
    "Environment": "plimsoll.dev/v1alpha1",
    "NodeProfile": "plimsoll.dev/v1alpha1",
    "InferenceSet": "kaito.sh/v1alpha1",
    "NodePool": "karpenter.sh/v1",
    "NodeClaim": "karpenter.sh/v1",
    "EC2NodeClass": "karpenter.k8s.aws/v1",
    "Queue": "scheduling.run.ai/v2",
    "PodGroup": "scheduling.run.ai/v2alpha2",
    "TrainJob": "trainer.kubeflow.org/v1alpha1",
    "ResourceClaim": "resource.k8s.io/v1",
    "ResourceClaimTemplate": "resource.k8s.io/v1",
    "DeviceClass": "resource.k8s.io/v1",
    "Node": "v1",
    "Namespace": "v1",
    "Application": "argoproj.io/v1alpha1",
    "HelmRelease": "helm.toolkit.fluxcd.io/v2",
    "HelmChart": "helm.cattle.io/v1",
}
BY_CONTENT = {
    "Pod",
    "TrainingRuntime",
    "ClusterTrainingRuntime",
    "JobSet",
    "objects with a pod template",
    "objects with a queue",
    "chart values",
    "Chart.yaml",
    "Chart and Release of Pulumi",
    "the exemptions of the settings",
}
"""What is read where it has a pod, a queue or a chart."""


def test_every_kind_that_a_rule_names_is_known_here() -> None:
    assert {kind for rule in RULES.values() for kind in rule.reads} == VERSIONS.keys() | BY_CONTENT


@pytest.mark.parametrize(("kind", "version"), VERSIONS.items())
def test_a_kind_that_a_rule_names_is_read(kind: str, version: str) -> None:
    assert is_read({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": {}})


def test_claims_and_classes_of_files_are_checked() -> None:
    claim = a_claim("c", asked(1, f"device.attributes['{DRIVER}'].uuid == 'GPU-1'"))
    classes = [a_class(name, extended_resource="nvidia.com/gpu") for name in ("a-gpu", "b-gpu")]
    assert rules(claim, *classes) == {"claim-selects-any-node", "device-class-resource-unique"}


def test_nodes_of_files_have_labels_that_pods_select() -> None:
    pod = with_path(a_pod(gpus=1), spec__nodeSelector={"nvidia.com/gpu.product": "Tesla-T4"})
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "gpu-1", "labels": {"nvidia.com/gpu.product": "Tesla-T4"}},
    }
    assert "gpu-workload-selects-known-label" in rules(pod, a_node_pool("p4d.24xlarge"))
    assert "gpu-workload-selects-known-label" not in rules(pod, a_node_pool("p4d.24xlarge"), node)


def rules(*manifests: object) -> set[str]:
    """The rules that `policy check` finds broken."""
    done = plimsoll("policy", "check", "-", "--output", "json", given=yaml.safe_dump_all(manifests))
    return {each["rule"] for each in json.loads(done.stdout)}

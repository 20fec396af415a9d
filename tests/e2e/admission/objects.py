"""A cluster with the admission policies and the kinds that they check."""

from typing import Any

from plimsoll.components import rule_policies
from plimsoll.components.admission import AdmissionPolicy
from tests.e2e.cluster.kinds import await_served, define_karpenter_kinds, define_kinds
from tests.e2e.cluster.kube import Kube

ADMISSION = "admissionregistration.k8s.io/v1"
KINDS = (
    ("karpenter.sh/v1", "NodePool"),
    ("karpenter.sh/v1", "NodeClaim"),
    ("kaito.sh/v1beta1", "Workspace"),
    ("kaito.sh/v1beta1", "InferenceSet"),
)


def prepare_admission(cluster: Kube) -> None:
    """Creates the CRDs and the policies."""
    define_kinds(cluster)
    define_karpenter_kinds(cluster)
    for kind in ("Workspace", "InferenceSet"):
        cluster.apply(_of_kaito(kind))
    await_served(cluster, KINDS)
    for name, admission in rule_policies().items():
        declare_admission(cluster, name, admission)


def declare_admission(cluster: Kube, name: str, admission: AdmissionPolicy) -> None:
    """A policy and its binding."""
    metadata = {"name": name}
    policy = {"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": metadata}
    cluster.apply(policy | {"spec": admission["policy"]})
    binding = {"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata}
    cluster.apply(binding | {"spec": {"policyName": name, **admission["binding"]}})


def _of_kaito(kind: str) -> dict[str, Any]:
    """The CRD of a KAITO kind that accepts any field, because its own definition is not part of this repository."""
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.kaito.sh"},
        "spec": {"group": "kaito.sh", "scope": "Namespaced", "names": names, "versions": [version]},
    }

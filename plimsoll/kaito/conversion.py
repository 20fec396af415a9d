"""Converts KAITO's Workspaces and InferenceSets to Plimsoll's Workspaces, and reports everything that is lost.

Field names and defaults: the CustomResourceDefinitions of kaito.sh, v1alpha1 and v1beta1.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from plimsoll.errors import InvalidObjectError
from plimsoll.kaito.inference import converted_inference
from plimsoll.kaito.labels import kept_labels, kept_selector
from plimsoll.kaito.losses import Losses
from plimsoll.labels import API_VERSION
from plimsoll.model.api import Workspace
from plimsoll.model.meta import identify
from plimsoll.serving import name_problem
from plimsoll.text import shortlist

VERSIONS: Final = ("kaito.sh/v1beta1", "kaito.sh/v1alpha1")
DEFAULT_TYPE: Final = "Standard_NC24ads_A100_v4"
"""Default of v1alpha1's CRD of Workspaces for `resource.instanceType`."""

_WORKSPACE_FIELDS: Final = {"apiVersion", "kind", "metadata", "status", "resource", "inference", "tuning"}
_RESOURCE_FIELDS: Final = {"instanceType", "count", "labelSelector", "preferredNodes", "partition"}
_OBJECT_FIELDS: Final = {"apiVersion", "kind", "metadata", "status", "spec"}
_TEMPLATE_FIELDS: Final = {"metadata", "resource", "inference"}
_SET_RESOURCE_FIELDS: Final = {"instanceType", "partition"}
_METADATA: Final = {
    "name",
    "namespace",
    *("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"),
    *("finalizers", "deletionTimestamp", "deletionGracePeriodSeconds"),
}
"""Fields that are copied, and fields that the cluster or KAITO's controller wrote."""
_ONE_AT_A_TIME: Final = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}
_SET_FIELDS: Final = {"replicas", "nodeCountLimit", "labelSelector", "template", "updateStrategy", "autoUpgrade"}


class Conversion(NamedTuple):
    """The result for one KAITO object."""

    source: str
    """`Kind namespace/name`"""
    workspace: dict[str, Any] | None
    """Plimsoll's manifest; None if something is refused."""
    losses: Losses


def convert(manifest: Mapping[str, Any]) -> Conversion:
    """Converts a Workspace or an InferenceSet of kaito.sh; refuses other kinds. Raises no errors for
    values as in JSON, whose keys are strings."""
    losses = Losses()
    made: dict[str, Any] | None = None
    version, kind = manifest.get("apiVersion"), manifest.get("kind")
    if version not in VERSIONS:
        losses.refuse("apiVersion", f"{version!r} is not KAITO's", f"{' and '.join(VERSIONS)} are supported")
    elif kind == "Workspace":
        made = _workspace(manifest, losses)
    elif kind == "InferenceSet":
        made = _inference_set(manifest, losses)
    else:
        losses.refuse("kind", f"{kind} is not implemented", "Workspace and InferenceSet are converted")
    if made is not None:
        _check(made, losses)
    return Conversion(identify(manifest), None if losses.refused else made, losses)


def _workspace(manifest: Mapping[str, Any], losses: Losses) -> dict[str, Any]:
    losses.unknown(manifest, _WORKSPACE_FIELDS, "")
    resource = losses.object(manifest, "resource")
    losses.unknown(resource, _RESOURCE_FIELDS, "resource.")
    if manifest.get("tuning") is not None:
        losses.refuse(
            "tuning",
            "fine-tuning is not implemented",
            "declare a Workspace with resource only, for which one node is provisioned, and run the tuning as a Job",
        )
    selector = losses.object(resource, "labelSelector", "resource.")
    if not resource.get("instanceType") and str(manifest["apiVersion"]).endswith("v1alpha1"):
        losses.warn(
            "resource.instanceType",
            f"KAITO's v1alpha1 defaults to {DEFAULT_TYPE}; here there is no default",
            "set it if node auto-provisioning is enabled; leave it out for existing nodes (BYO)",
        )
    spec = {"resource": _resource(resource, selector, "resource.", losses)}
    count = losses.count(resource, "count", "resource.")
    several = count > 1
    if manifest.get("inference") is None:
        if several:
            spec["resource"]["count"] = count
        return _manifest(manifest, spec, losses)
    spec["inference"] = made = converted_inference(losses.object(manifest, "inference"), "inference.", losses)
    if several and made.get("template") is not None:
        # KAITO runs a template as a StatefulSet of that many pods, one a node.
        made |= {"replicas": count, "stableIdentity": True}
    elif several:
        losses.warn(
            "resource.count",
            f"{count} is not converted: the number of nodes per replica is computed, as in KAITO",
            f"set inference.perReplicaNodeCount: {count} for a replica on several nodes, or inference.replicas for "
            "more replicas",
        )
    return _manifest(manifest, spec, losses)


def _resource(
    resource: Mapping[str, Any], selector: Mapping[str, Any], at: str, losses: Losses, selector_at: str = ""
) -> dict[str, Any]:
    """The converted field; `at` is its path with a trailing dot."""
    made: dict[str, Any] = {}
    if resource.get("instanceType"):
        made["instanceType"] = resource["instanceType"]
    selector_at = selector_at or f"{at}labelSelector"
    kept = kept_selector(selector, selector_at, losses)
    if kept:
        made["labelSelector"] = kept
    elif not losses.refused and not made:
        losses.warn(
            selector_at,
            "it is empty, which matches every node in KAITO; here, for existing nodes (BYO), the smallest group of "
            "nodes with the same GPUs is chosen that serves",
            "set matchLabels or matchExpressions to choose the nodes yourself",
        )
    if resource.get("preferredNodes"):
        losses.warn(
            f"{at}preferredNodes",
            f"has no effect, as in KAITO ({shortlist(_texts(resource['preferredNodes']))})",
            "label the nodes, and select the label by resource.labelSelector",
        )
    if resource.get("partition") is not None:
        made["partition"] = resource["partition"]
    return made


def _inference_set(manifest: Mapping[str, Any], losses: Losses) -> dict[str, Any]:
    """One Workspace with the set's replicas: each replica has nodes of its own, like each Workspace of the set."""
    losses.unknown(manifest, _OBJECT_FIELDS, "")
    spec = losses.object(manifest, "spec")
    template = losses.object(spec, "template", "spec.")
    losses.unknown(spec, _SET_FIELDS, "spec.")
    losses.unknown(template, _TEMPLATE_FIELDS, "spec.template.")
    at = "spec.template.resource."
    resource = losses.object(template, "resource", "spec.template.")
    losses.unknown(resource, _SET_RESOURCE_FIELDS, at)
    # KAITO labels the Workspaces of a set with its selector's labels and selects nodes by them.
    selector = losses.object(spec, "labelSelector", "spec.")
    made = {"resource": _resource(resource, selector, at, losses, "spec.labelSelector")}
    if spec.get("nodeCountLimit") is not None:
        made["resource"]["nodeCountLimit"] = spec["nodeCountLimit"]
    inference = losses.object(template, "inference", "spec.template.")
    made["inference"] = {
        **converted_inference(inference, "spec.template.inference.", losses),
        "replicas": spec.get("replicas", 1),
    }
    losses.warn(
        "kind",
        "an InferenceSet becomes one Workspace with the same replicas, and one workload instead of one per replica",
        "scale it by inference.replicas",
    )
    if losses.object(spec, "autoUpgrade", "spec."):
        losses.warn(
            "spec.autoUpgrade", "images are not upgraded automatically", "set inferenceImage of the Environment"
        )
    if template.get("metadata"):
        losses.warn(
            "spec.template.metadata",
            "the set becomes a single Workspace",
            "move the labels and annotations to keep to the metadata of the set",
        )
    if losses.object(spec, "updateStrategy", "spec.") not in ({}, _ONE_AT_A_TIME):
        losses.warn("spec.updateStrategy", "replicas are replaced one at a time")
    return _manifest(manifest, made, losses)


def _manifest(manifest: Mapping[str, Any], spec: dict[str, Any], losses: Losses) -> dict[str, Any]:
    """A manifest with name, namespace, labels and annotations, without fields that the cluster wrote."""
    given = losses.object(manifest, "metadata")
    metadata = {key: given[key] for key in ("name", "namespace") if given.get(key)}
    for field in ("labels", "annotations"):
        kept = kept_labels(losses.object(given, field, "metadata."), f"metadata.{field}", losses)
        if kept:
            metadata[field] = kept
    for field in sorted(given.keys() - _METADATA - {"labels", "annotations"}):
        losses.warn(f"metadata.{field}", "it is not converted", "set it on the converted Workspace if it is needed")
    # An empty inference is refused as in KAITO: without the field, nodes alone would be created.
    kept_spec = {key: value for key, value in spec.items() if value or key == "inference"}
    return {"apiVersion": API_VERSION, "kind": "Workspace", "metadata": metadata, "spec": kept_spec}


def _check(made: dict[str, Any], losses: Losses) -> None:
    """Refuses what the model rejects, with the model's message; warns of what validation will refuse."""
    try:
        workspace = Workspace.read(made)
    except InvalidObjectError as error:
        losses.refuse("", error.message, "correct it in KAITO's manifest")
        return
    inference = workspace.spec.inference
    if inference is not None:
        kind = "StatefulSet" if inference.stable_identity else "Deployment"
        problem = name_problem(workspace.name, kind=kind, replicas=workspace.replicas)
        if problem:
            losses.warn("metadata.name", f"the Workspace will be refused: {problem}")


def _texts(value: Any) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else [str(value)]

"""KAITO's Workspaces and InferenceSets as Workspaces of ours, with everything that is lost on the way named.

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
from plimsoll.text import shortlist

VERSIONS: Final = ("kaito.sh/v1beta1", "kaito.sh/v1alpha1")
DEFAULT_TYPE: Final = "Standard_NC24ads_A100_v4"
"""What the CRD of v1alpha1 fills in for an absent `resource.instanceType`."""

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
"""What goes along, and what the cluster and KAITO's controller wrote."""
_ONE_AT_A_TIME: Final = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}
_SET_FIELDS: Final = {"replicas", "nodeCountLimit", "labelSelector", "template", "updateStrategy", "autoUpgrade"}


class Conversion(NamedTuple):
    """One object of KAITO's."""

    source: str
    """`Kind namespace/name`"""
    workspace: dict[str, Any] | None
    """The manifest of ours; None where something is refused."""
    losses: Losses


def convert(manifest: Mapping[str, Any]) -> Conversion:
    """Converts a Workspace or an InferenceSet of kaito.sh; other kinds are refused by name. Raises nothing."""
    losses = Losses()
    made: dict[str, Any] | None = None
    version, kind = manifest.get("apiVersion"), manifest.get("kind")
    if version not in VERSIONS:
        losses.refuse("apiVersion", f"{version!r} is not KAITO's", f"{' and '.join(VERSIONS)} are read")
    elif kind == "Workspace":
        made = _workspace(manifest, losses)
    elif kind == "InferenceSet":
        made = _inference_set(manifest, losses)
    else:
        losses.refuse("kind", f"{kind} is not scheduled", "Workspace and InferenceSet are converted")
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
            "fine-tuning is not scheduled",
            "declare a Workspace with resource alone, which is given one node, and run the tuning on it as a Job",
        )
    selector = losses.object(resource, "labelSelector", "resource.")
    spec = {"resource": _resource(resource, selector, _At(str(manifest["apiVersion"]), "resource."), losses)}
    if manifest.get("inference") is not None:
        spec["inference"] = converted_inference(losses.object(manifest, "inference"), "inference.", losses)
    return _manifest(manifest, spec, losses)


class _At(NamedTuple):
    """Where a `resource` stands."""

    version: str
    prefix: str


def _resource(
    resource: Mapping[str, Any], selector: Mapping[str, Any], at: _At, losses: Losses, selector_at: str = ""
) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if resource.get("instanceType"):
        made["instanceType"] = resource["instanceType"]
    elif at.version.endswith("v1alpha1"):
        losses.warn(
            f"{at.prefix}instanceType",
            f"KAITO's v1alpha1 takes {DEFAULT_TYPE} where none is given, and none is filled in here",
            "set it where node auto-provisioning is enabled; leave it out where nodes are brought",
        )
    selector_at = selector_at or f"{at.prefix}labelSelector"
    kept = kept_selector(selector, selector_at, losses)
    if kept:
        made["labelSelector"] = kept
    elif not losses.refused and not made:
        losses.warn(
            selector_at,
            "it is empty, which matches every node in KAITO and is refused here where nodes are brought",
            "name the nodes by matchLabels or matchExpressions",
        )
    count = resource.get("count")
    if count not in (None, 1):
        losses.warn(
            f"{at.prefix}count",
            f"{count} is not carried over: how many nodes one replica takes is computed, in KAITO too",
            f"set inference.perReplicaNodeCount: {count} for a replica over so many nodes, inference.replicas for more "
            "replicas",
        )
    if resource.get("preferredNodes"):
        losses.warn(
            f"{at.prefix}preferredNodes",
            f"not read, in KAITO neither ({shortlist(_texts(resource['preferredNodes']))})",
            "label the nodes, and name the label in resource.labelSelector",
        )
    if resource.get("partition") is not None:
        made["partition"] = resource["partition"]
    return made


def _inference_set(manifest: Mapping[str, Any], losses: Losses) -> dict[str, Any]:
    """One Workspace of as many replicas: each has nodes of its own, as each Workspace of the set had."""
    losses.unknown(manifest, _OBJECT_FIELDS, "")
    spec = losses.object(manifest, "spec")
    template = losses.object(spec, "template", "spec.")
    losses.unknown(spec, _SET_FIELDS, "spec.")
    losses.unknown(template, _TEMPLATE_FIELDS, "spec.template.")
    at = _At(str(manifest["apiVersion"]), "spec.template.resource.")
    resource = losses.object(template, "resource", "spec.template.")
    losses.unknown(resource, _SET_RESOURCE_FIELDS, at.prefix)
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
        "an InferenceSet becomes one Workspace of as many replicas, and one workload instead of one a replica",
        "scale it by inference.replicas",
    )
    if losses.object(spec, "autoUpgrade", "spec."):
        losses.warn(
            "spec.autoUpgrade", "images are not upgraded by themselves", "set inferenceImage of the Environment"
        )
    if template.get("metadata"):
        losses.warn(
            "spec.template.metadata",
            "there are no Workspaces below the one that is made",
            "put what is to be kept into the metadata of the set",
        )
    if losses.object(spec, "updateStrategy", "spec.") not in ({}, _ONE_AT_A_TIME):
        losses.warn("spec.updateStrategy", "replicas are replaced one at a time")
    return _manifest(manifest, made, losses)


def _manifest(manifest: Mapping[str, Any], spec: dict[str, Any], losses: Losses) -> dict[str, Any]:
    """Name, namespace, labels and annotations go along; what the cluster wrote does not."""
    given = losses.object(manifest, "metadata")
    metadata = {key: given[key] for key in ("name", "namespace") if given.get(key)}
    for field in ("labels", "annotations"):
        kept = kept_labels(losses.object(given, field, "metadata."), f"metadata.{field}", losses)
        if kept:
            metadata[field] = kept
    for field in sorted(given.keys() - _METADATA - {"labels", "annotations"}):
        losses.warn(f"metadata.{field}", "it is left out", "set it on what is made, where it is wanted")
    kept_spec = {key: value for key, value in spec.items() if value != {}}
    return {"apiVersion": API_VERSION, "kind": "Workspace", "metadata": metadata, "spec": kept_spec}


def _check(made: dict[str, Any], losses: Losses) -> None:
    """What the model does not take is refused with its words."""
    try:
        Workspace.read(made)
    except InvalidObjectError as error:
        losses.refuse("", error.message, "correct it in KAITO's manifest")


def _texts(value: Any) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else [str(value)]

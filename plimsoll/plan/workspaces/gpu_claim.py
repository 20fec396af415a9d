"""The ResourceClaimTemplate of a Workspace whose pods get GPUs by claims (`resource.devices: claim`)."""

import hashlib
from typing import Any, Final

import orjson

from plimsoll.labels import SPEC_HASH
from plimsoll.model import Verdict
from plimsoll.model.api import Environment, Workspace
from plimsoll.plan.owned import NAME_LENGTH, object_labels

CLAIM: Final = "gpus"
"""Name of the claim in the pods."""
_DIGITS: Final = 10


def claim_template(
    workspace: Workspace, verdict: Verdict, environment: Environment, devices: int
) -> dict[str, Any] | None:
    """The template for pods that take so many GPUs of a node; None where they get these by the extended resource, or
    none.

    Its name has a hash of its spec, which the apiserver lets nobody change: other devices are another template.
    """
    if not workspace.spec.resource.claims or not devices:
        return None
    exactly = {"deviceClassName": verdict.device_resource, "allocationMode": "ExactCount", "count": devices}
    spec = {"spec": {"devices": {"requests": [{"name": CLAIM, "exactly": exactly}]}}}
    text = orjson.dumps([workspace.uid, spec], option=orjson.OPT_SORT_KEYS)
    digest = hashlib.sha256(text).hexdigest()[:_DIGITS]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {
            "name": f"{workspace.name[: NAME_LENGTH - _DIGITS - 1].rstrip('-.')}-{digest}",
            "namespace": workspace.namespace,
            "labels": object_labels(workspace, environment),
            "annotations": {SPEC_HASH: digest},
        },
        "spec": spec,
    }

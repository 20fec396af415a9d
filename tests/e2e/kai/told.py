"""What the objects of a cluster say of pods without a place, for the report of a failed test."""

import json
from collections.abc import Iterator
from typing import Any

from tests.e2e.cluster.kube import Kube, Manifest
from tests.e2e.demand.environment import API, CLAIM
from tests.e2e.kai.workloads import POD_GROUP

_KINDS = (
    ("v1", "Pod"),
    POD_GROUP,
    ("scheduling.run.ai/v1alpha2", "BindRequest"),
    (API, "GPUDemand"),
    CLAIM,
    ("v1", "Node"),
)
_SPEC = ("nodeName", "schedulingGates", "minMember", "podName", "selectedNode", "selectedGPUGroups", "taints")
_EVENTS = 200
"""The newest."""


def told(cluster: Kube) -> str:
    """Labels, annotations and statuses of what leads from a pending pod to its GPU, then the newest events: a pod that
    is not there any more has only those."""
    return "\n".join((*_objects(cluster), *_events(cluster)))


def _objects(cluster: Kube) -> Iterator[str]:
    for kind in _KINDS:
        for each in cluster.list(*kind):
            metadata, spec = each["metadata"], each.get("spec", {})
            going = f", going since {metadata['deletionTimestamp']}" if "deletionTimestamp" in metadata else ""
            yield f"{kind[1]} {_name(metadata)}, created {metadata['creationTimestamp']}{going}"
            yield f"  {_text({**metadata.get('labels', {}), **metadata.get('annotations', {})})}"
            yield f"  {_text({key: spec[key] for key in _SPEC if key in spec})} {_text(each.get('status', {}))}"


def _events(cluster: Kube) -> Iterator[str]:
    found = [(_time(each), each) for each in cluster.list("v1", "Event")]
    for time, each in sorted(found, key=lambda pair: pair[0])[-_EVENTS:]:
        about = each["involvedObject"]
        name = f"{about.get('kind')} {about.get('namespace', '')}/{about.get('name')}"
        yield f"Event {time} {name}: {each.get('reason')}: {each.get('message')}"


def _time(event: Manifest) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"])


def _name(metadata: Manifest) -> str:
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))


def _text(values: dict[str, Any]) -> str:
    return json.dumps(values, sort_keys=True)

"""`spec.demand` of an Environment: accepted and refused settings."""

from typing import Any

import pytest

from plimsoll.errors import InvalidObjectError
from plimsoll.model.api import Environment

HEADROOM = {"name": "warm", "nodePool": "gpu", "instanceType": "p5.48xlarge", "gpus": 8, "nodes": 1}


def read(**demand: Any) -> Environment:
    return Environment.read({"kind": "Environment", "metadata": {"name": "prod"}, "spec": {"demand": demand}})


def test_nothing_is_requested_by_default() -> None:
    settings = Environment.default().spec.demand
    assert settings.provisioner == "none"
    assert settings.schedulers == ("kai-scheduler", "default-scheduler", "tensor-fusion-scheduler")


def test_headroom_requires_capacity_buffers() -> None:
    settings = read(provisioner="capacity-buffer", headroom=[HEADROOM]).spec.demand
    assert settings.headroom[0].nodes == 1


@pytest.mark.parametrize(
    ("demand", "message"),
    [
        ({"provisioner": "trigger-pods"}, "spec.demand.provisioner"),
        ({"namespace": "kai-scale-adjust"}, "KAI's namespaces"),
        ({"namespace": "Triggers"}, "spec.demand.namespace"),
        ({"labelPrefix": "not a name"}, "must be a DNS name"),
        ({"schedulers": []}, "spec.demand.schedulers"),
        ({"deadlineSeconds": 0}, "spec.demand.deadlineSeconds"),
        # A time that far in the future has no date.
        ({"deadlineSeconds": 10**12}, "spec.demand.deadlineSeconds"),
        ({"retrySeconds": 10**12}, "spec.demand.retrySeconds"),
        ({"pauseSeconds": 10**12}, "spec.demand.pauseSeconds"),
        ({"retentionSeconds": 10**12}, "spec.demand.retentionSeconds"),
        ({"provisioner": "trigger-pod", "headroom": [HEADROOM]}, "capacity-buffer"),
        ({"provisioner": "capacity-buffer", "headroom": [HEADROOM, HEADROOM]}, "same name"),
    ],
)
def test_an_invalid_setting_is_refused_with_its_field(demand: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidObjectError, match=message):
        read(**demand)

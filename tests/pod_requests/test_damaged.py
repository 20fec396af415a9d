"""Anyone may write a pod: any annotations and amounts are read or refused, without another error."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.pods import KnownParts, read_request
from plimsoll.errors import PlimsollError
from plimsoll.model import tensor_fusion as tf
from plimsoll.model.kai import GPU_FRACTION_CONTAINER, MAX_DEVICES, MPS, SHARE_ANNOTATIONS
from tests.fuzzing.damage import VALUES
from tests.pod_requests.pods import DECLARED, KNOWN, RESOURCES, SHARED, a_pod

NUMBERS = ("0.5", "1", "0", "-1", "4Gi", "half", "", "2", "1e-999", "1e999", "NaN", "sNaN", "Infinity", "９", "true")
_text = st.one_of(st.sampled_from(NUMBERS), st.text(max_size=12))
_container = st.sampled_from(("main", "side-1", "gone", ""))
_suffix = st.sampled_from(
    (".gpu-memory.request", ".gpu-memory.limit", ".gpu-compute.mode", ".gpu-memory.portion.limit", ".gpus.devices", "")
)
_prefix = st.sampled_from(("nvidia.com/container.", "kai.scheduler/container."))
_keys = st.one_of(
    st.sampled_from((*SHARE_ANNOTATIONS, GPU_FRACTION_CONTAINER, MPS, *tf.ANNOTATIONS)),
    st.builds(lambda *parts: "".join(parts), _prefix, _container, _suffix),
)
_resources = st.sampled_from(
    (*(name for names in RESOURCES.values() for name in names), "deviceclass.resource.kubernetes.io/gpu.nvidia.com")
)
_amounts = st.one_of(st.sampled_from((*NUMBERS, 1, 2, 0.5, True, 10**9)), VALUES)


@given(
    st.dictionaries(_keys, _text, max_size=4),
    st.lists(st.dictionaries(_resources, _amounts, max_size=3), min_size=1, max_size=2),
    st.sampled_from((KNOWN, None)),
)
def test_any_request_is_read_or_refused(
    annotations: dict[str, str], resources: list[dict[str, Any]], known: KnownParts | None
) -> None:
    try:
        pod = a_pod(annotations, [{"limits": each} for each in resources])
    except PlimsollError:
        return
    request = read_request(pod, parts=known)
    assert request.share is None or request.refusal is None
    assert not request.uncertain or request.refusal is not None
    for share in (request.share, request.held):
        assert share is None or 1 <= share.devices <= MAX_DEVICES
    if request.refusal is not None:
        assert request.refusal.hint
        assert len(request.refusal.problem) < 400
        assert any(name in request.refusal.problem for name in (*annotations, *pod.extended_resources))
    assert all(count > 0 for _, count in request.devices)


@pytest.mark.parametrize("amount", ["half", "-1", "500m", str(10**9)])
@pytest.mark.parametrize("resource", ["nvidia.com/gpu", DECLARED[0]])
def test_a_number_of_devices_that_cannot_be_planned_for_is_refused(resource: str, amount: str) -> None:
    request = read_request(a_pod({}, [{"limits": {resource: amount}}]), parts=KNOWN)
    assert request.refusal is not None
    assert request.refusal.problem.startswith(resource)
    assert request.held is None


@pytest.mark.parametrize("resource", ["amd.com/gpu", "nvidia.com/mlnxnics", "nvidia.com/hostdev", SHARED])
def test_a_number_of_other_devices_does_not_matter(resource: str) -> None:
    request = read_request(a_pod({}, [{"limits": {resource: "half"}}]), parts=KNOWN)
    assert (request.share, request.refusal, request.devices) == (None, None, ())


@pytest.mark.parametrize("amount", ["0", 0])
def test_none_of_a_resource_is_no_request(amount: Any) -> None:
    request = read_request(a_pod({"gpu-fraction": "0.5"}, [{"limits": {"amd.com/gpu": amount}}]))
    assert request.refusal is None
    assert request.share is not None

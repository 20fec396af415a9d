"""Every pair of forms in which a pod may ask for devices is planned for, left to others, or refused by both names."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.pods import PodRequest, read_request
from plimsoll.model.kai import GPUShare
from tests.pod_requests.pods import ANNOTATIONS, FORMS, KNOWN, RESOURCES, layouts

TABLE = """
               fraction   memory     container  tensor-fusion whole  declared provided undeclared vendor unknown claim network
fraction       .          no         container  no            no     no       no       no         no     no      no    fraction
memory         .          .          container  no            no     no       no       no         no     no      no    memory
container      .          .          .          no            no     no       no       no         no     no      no    container
tensor-fusion  .          .          .          .             no     no       no       no         no     no      no    tensor-fusion
whole          .          .          .          .             .      no       no       no         no     whole   whole whole
declared       .          .          .          .             .      no       no       no         no     no      no    declared
provided       .          .          .          .             .      .        none     no         no     none    none  none
undeclared     .          .          .          .             .      .        .        no         no     no      no    no
vendor         .          .          .          .             .      .        .        .          no     none    none  vendor
unknown        .          .          .          .             .      .        .        .          .      none    none  none
claim          .          .          .          .             .      .        .        .          .      .       none  none
network        .          .          .          .             .      .        .        .          .      .       .     none
"""  # noqa: E501
"""What capacity is planned for: the request in that form, none, because others provide the node or nobody does, or no:
the pod is refused. On the diagonal: two resources of the form.

Sources: KAI's admission for its annotations beside each other and beside whole GPUs, and for these alone; a node has
GPUs of one vendor; the scheduler of an autoscaler sees all resources of a pod with whole GPUs.
"""
_NAMES, *_ROWS = (line.split() for line in TABLE.strip().splitlines())
PAIRS = {(row[0], column): cell for row in _ROWS for column, cell in zip(_NAMES, row[1:], strict=True) if cell != "."}
ALONE = {
    **{form: form for form in (*ANNOTATIONS, "whole", "declared", "vendor")},
    **dict.fromkeys(("provided", "unknown", "claim", "network"), "none"),
    "undeclared": "no",
}
SHARES = {
    "fraction": GPUShare(milli=500),
    "memory": GPUShare(memory_mib=2048),
    "container": GPUShare(memory_mib=2048),
    "tensor-fusion": GPUShare(memory_mib=2048, by_tensor_fusion=True),
    "whole": GPUShare(milli=1000),
    "vendor": GPUShare(milli=1000, resource=RESOURCES["vendor"][0]),
    "declared": GPUShare(resource=RESOURCES["declared"][0]),
}
FIELDS = {
    **{form: next(iter(annotations)) for form, annotations in ANNOTATIONS.items()},
    **{form: names[0] for form, names in RESOURCES.items()},
    "claim": "spec.resourceClaims",
}


def outcome(request: PodRequest) -> str:
    if request.refusal is not None:
        assert request.refusal.hint
        assert request.share is None
        return "no"
    if request.share is None:
        return "none"
    (form, *_) = [form for form, share in SHARES.items() if share == request.share]
    return form


def cells(forms: list[str]) -> list[str]:
    """The cells of all pairs of these forms."""
    return [PAIRS[pair] for pair in combinations(sorted(forms, key=_NAMES.index), 2)]


def equals(form: str) -> str:
    """The form with the same share that comes first."""
    return next((each for each in SHARES if SHARES[each] == SHARES.get(form)), form)


def test_the_table_is_complete() -> None:
    assert set(_NAMES) == set(FORMS) == {row[0] for row in _ROWS}
    assert all(pair in PAIRS for pair in combinations(_NAMES, 2))
    assert {form for form, other in PAIRS if form == other} == {"claim", *(set(RESOURCES) - {"whole"})}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_alone(form: str) -> None:
    for pod in layouts(form):
        assert outcome(read_request(pod, parts=KNOWN)) == equals(ALONE[form])


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=" + ".join)
def test_each_pair(one: str, other: str) -> None:
    for pod in layouts(one, other):
        request = read_request(pod, parts=KNOWN)
        assert outcome(request) == equals(PAIRS[one, other])
        if request.refusal is None or "undeclared" in (one, other):
            continue
        second = RESOURCES[one][1] if one == other else FIELDS[other]
        assert FIELDS[one] in request.refusal.problem
        assert second in request.refusal.problem


several = st.lists(st.sampled_from(FORMS), min_size=1, max_size=5, unique=True)


@given(several, st.integers(0, 4))
def test_several_forms_are_refused_if_two_of_them_are(forms: list[str], layout: int) -> None:
    request = read_request(layouts(*forms)[layout], parts=KNOWN)
    left = {"vendor"} if {"unknown", "claim"}.intersection(forms) else set()
    planned = [form for form in ("container", *SHARES) if form in forms and form not in left]
    refused = "undeclared" in forms or "no" in cells(forms)
    assert outcome(request) == ("no" if refused else equals(planned[0] if planned else "none"))


@given(several, st.integers(0, 4))
def test_what_a_running_pod_has_counts_whether_it_is_refused_or_not(forms: list[str], layout: int) -> None:
    """The kubelet gives a container its whole GPUs and slices, whatever the annotations of the pod say. Whether nodes
    can come for parts of GPUs is no question then."""
    request = read_request(layouts(*forms)[layout])
    alike = {"undeclared": "provided", "declared": "network"}
    refused = "no" in cells([alike.get(form, form) for form in forms])
    annotated = next((form for form in ("container", *ANNOTATIONS) if form in forms), "")
    assert (request.refusal is not None) == refused
    assert request.uncertain == (refused and bool(annotated))
    held = "whole" if "whole" in forms else "vendor" if "vendor" in forms else "" if refused else annotated
    assert request.held == SHARES.get(held)
    assert dict(request.devices) == {RESOURCES[form][0]: 1 for form in forms if form in RESOURCES}
    assert request.has_parts == bool({"provided", "undeclared"} & {*forms})
    assert request.has_claims == ("claim" in forms)
    assert request.uses_gpus == (request.has_parts or not {"whole", "vendor"}.isdisjoint(forms) or bool(annotated))

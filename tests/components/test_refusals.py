"""A component refuses invalid values before anything is declared, and names the field."""

import re
from typing import Any

import pulumi
import pytest

from plimsoll.components import NodePool, NodePoolArgs, Queue
from plimsoll.errors import InvalidObjectError
from tests.components.declaring import declared
from tests.components.refused import NAME, REFUSED, Refused

KWOK: NodePoolArgs = {"node_class_ref": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass"}}


@pytest.mark.parametrize("refused", REFUSED, ids=lambda each: f"{each.kind}: {each.field}")
def test_a_refusal_names_the_object_and_the_field(refused: Refused) -> None:
    assert re.match(rf"{refused.kind} {NAME}(: |\.){re.escape(refused.field)}[: ]", refused.message())


@pytest.mark.parametrize("value", ["a100-80gb", "v2", "2026", "team-1", "deadbeef"])
def test_node_pool_accepts_labels_that_do_not_change(value: str) -> None:
    declared(lambda: NodePool("gpu", {**KWOK, "labels": {"class": value}}))


def test_unknown_values_are_checked_when_they_are_known() -> None:
    late: pulumi.Output[Any] = pulumi.Output.from_input({"gpu": {"quota": 2, "limit": 1}})
    with pytest.raises(InvalidObjectError, match=r"^Queue q: resources\.gpu: "):
        declared(lambda: Queue("q", {"resources": late}))

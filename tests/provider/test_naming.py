import re
from typing import Any

import pytest

from plimsoll.errors import PlimsollError
from plimsoll.kube import Kind, id_of, kind_of, kind_of_type, parse_id, type_of
from plimsoll.provider import UNKNOWN, adopt_autoname, autoname


def test_an_object_without_a_name_gets_one_from_the_seed() -> None:
    first: dict[str, Any] = {}
    again: dict[str, Any] = {}
    other: dict[str, Any] = {}
    autoname(first, "web", b"seed")
    autoname(again, "web", b"seed")
    autoname(other, "web", b"another")
    assert re.fullmatch(r"web-[0-9a-f]{8}", first["metadata"]["name"])
    assert first == again
    assert other["metadata"]["name"] != first["metadata"]["name"]
    assert first["metadata"]["annotations"] == {"pulumi.com/autonamed": "true"}


def test_a_proposed_name_is_used() -> None:
    obj: dict[str, Any] = {"metadata": {"labels": {"a": "b"}}}
    autoname(obj, "web", b"seed", "prod-web")
    assert obj["metadata"]["name"] == "prod-web"


@pytest.mark.parametrize(
    "obj", [{"metadata": {"name": "mine"}}, {"metadata": {"name": UNKNOWN}}, {"metadata": UNKNOWN}]
)
def test_an_explicit_or_unknown_name_is_not_changed(obj: dict[str, Any]) -> None:
    before = repr(obj)
    autoname(obj, "web", b"seed")
    assert repr(obj) == before


def test_the_automatic_name_of_the_former_version_is_kept() -> None:
    old: dict[str, Any] = {}
    autoname(old, "web", b"seed")
    new: dict[str, Any] = {"metadata": {"annotations": {"a": "b"}}}
    adopt_autoname(new, old)
    assert new["metadata"]["name"] == old["metadata"]["name"]
    assert new["metadata"]["annotations"] == {"a": "b", "pulumi.com/autonamed": "true"}


def test_an_explicit_former_name_is_not_kept() -> None:
    new: dict[str, Any] = {}
    adopt_autoname(new, {"metadata": {"name": "explicit"}})
    assert new == {}


def test_kinds_and_type_tokens() -> None:
    assert kind_of({"apiVersion": "core/v1", "kind": "Pod"}) == Kind("", "v1", "Pod")
    assert kind_of_type("kubernetes:core/v1:Pod") == Kind("", "v1", "Pod")
    assert kind_of_type("kubernetes:karpenter.sh/v1:NodeClaim").api_version == "karpenter.sh/v1"
    for token in ("kubernetes:core/v1:Pod", "kubernetes:rbac.authorization.k8s.io/v1:Role"):
        assert type_of(kind_of_type(token)) == token
    with pytest.raises(PlimsollError, match="aws:s3:Bucket"):
        kind_of_type("aws:s3:Bucket")


def test_ids() -> None:
    assert id_of({"metadata": {"name": "a", "namespace": "b"}}) == "b/a"
    assert id_of({"metadata": {"name": "a"}}) == "a"
    assert parse_id("b/a") == ("b", "a")
    assert parse_id("a") == ("", "a")
    for wrong in ("", "a/", "a/b/c"):
        with pytest.raises(PlimsollError):
            parse_id(wrong)

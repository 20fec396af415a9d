from typing import Any

from plimsoll.kube import Connection, Objects, owned_by_apply, take_over


class Patches(Objects):
    """Records the patches instead of sending them."""

    def __init__(self) -> None:
        super().__init__(Connection.__new__(Connection))
        self.made: list[list[dict[str, Any]]] = []

    def patch(self, live: dict[str, Any], operations: list[dict[str, Any]]) -> dict[str, Any]:
        self.made.append(operations)
        return live


def entry(manager: str, operation: str, *fields: str, **more: str) -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "fieldsV1": {"f:data": {f"f:{f}": {} for f in fields}}, **more}


def an_object(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "x", "resourceVersion": "7", "managedFields": list(entries)}}


def taken(live: dict[str, Any], former: str = "me", manager: str = "me") -> list[dict[str, Any]] | None:
    objects = Patches()
    take_over(objects, live, former, manager)
    return objects.made[0][0]["value"] if objects.made else None


def test_a_create_becomes_an_apply() -> None:
    live = an_object(entry("me", "Update", "a"), entry("other", "Update", "b"))
    assert taken(live) == [entry("other", "Update", "b"), entry("me", "Apply", "a")]


def test_fields_of_create_and_apply_are_joined() -> None:
    live = an_object(entry("me", "Update", "a", "b"), entry("me", "Apply", "b", "c"))
    assert taken(live) == [{**entry("me", "Apply"), "fieldsV1": {"f:data": {"f:b": {}, "f:c": {}, "f:a": {}}}}]


def test_fields_of_our_former_manager_are_taken_over() -> None:
    assert taken(an_object(entry("old", "Update", "a")), "old", "new") == [entry("new", "Apply", "a")]


def test_subresources_are_not_changed() -> None:
    assert taken(an_object(entry("me", "Update", "a", subresource="status"))) is None


def test_without_fields_to_convert_there_is_no_request() -> None:
    assert taken(an_object(entry("me", "Apply", "a"))) is None


def test_only_applied_fields_are_removed_by_the_next_apply() -> None:
    assert owned_by_apply(an_object(entry("me", "Apply", "a"), entry("kubelet", "Update", "b")), "me")
    assert not owned_by_apply(an_object(entry("me", "Update", "a")), "me")
    assert not owned_by_apply(an_object(entry("me", "Apply", "a"), entry("me", "Update", "b")), "me")
    assert not owned_by_apply({}, "me")

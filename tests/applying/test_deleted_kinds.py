"""A CustomResourceDefinition is deleted after its path was read: lists have no objects of the kind, as before it was
served, so that the states of the stacks can be repaired."""

from collections.abc import Iterator
from typing import Any

import pytest

from plimsoll.kube import Kind, NoSuchKindError, Objects, RequestError

KIND = Kind("karpenter.sh", "v1", "NodeClaim")


class Cluster:
    """Serves one NodeClaim, until its kind is deleted. A connection."""

    served = True

    def _require_served(self) -> None:
        if not self.served:
            raise RequestError(404, "NotFound", "the server could not find the requested resource")

    def request(self, *_: object, **__: object) -> dict[str, Any]:
        self._require_served()
        return {"resources": [{"name": "nodeclaims", "kind": "NodeClaim", "namespaced": False}]}

    def list_items(self, path: str, **_: object) -> Iterator[dict[str, Any]]:
        assert path == "/apis/karpenter.sh/v1/nodeclaims"
        self._require_served()
        yield {"metadata": {"name": "a"}}


def test_a_kind_that_was_deleted_has_no_objects() -> None:
    cluster: Any = Cluster()
    objects = Objects(cluster)
    assert len(objects.labelled(KIND, "team=a")) == len(objects.names(KIND)) == 1
    cluster.served = False
    assert objects.labelled(KIND, "team=a") == []
    assert objects.names(KIND) == set()
    with pytest.raises(NoSuchKindError):
        objects.mapping(KIND)

"""What nodes show is written to their NodeProfiles once."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from kubernetes import client

from plimsoll.kube import Connection, RequestError
from plimsoll.model.api import KnownNodeProfile
from plimsoll.model.cluster import Node
from plimsoll.report import ProfileWriter
from tests.builders import a_snapshot
from tests.node_profiles.cluster import FAMILY, TYPE, pool_node

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
NAME = f"gpu.{TYPE}"
PATH = f"/apis/plimsoll.dev/v1alpha1/nodeprofiles/{NAME}"


class Profiles(Connection):
    """An apiserver that applies NodeProfiles; it refuses the first `refused` requests."""

    def __init__(self) -> None:
        super().__init__(client.Configuration())
        self.objects: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.refused = 0

    def request(self, method: str, path: str, body: Any = None, **options: Any) -> dict[str, Any]:
        assert method == "PATCH"
        self.asked.append(path)
        if self.refused:
            self.refused -= 1
            raise RequestError(403, "Forbidden", "no rights")
        own = path.removesuffix("/status")
        if path != own and own not in self.objects:
            raise RequestError(404, "NotFound", path)
        self.objects[own] = {**self.objects.get(own, {}), **body}
        return self.objects[own]

    def known(self) -> list[KnownNodeProfile]:
        return [KnownNodeProfile.read(each) for each in self.objects.values()]


@pytest.fixture
def apiserver() -> Profiles:
    return Profiles()


@pytest.fixture
def writer(apiserver: Profiles) -> Iterator[ProfileWriter]:
    writer = ProfileWriter(apiserver)
    yield writer
    writer.close()


def write(writer: ProfileWriter, apiserver: Profiles, *nodes: Node) -> list[str]:
    """The requests of one round."""
    apiserver.asked.clear()
    writer.write(a_snapshot(*nodes, *apiserver.known()), NOW)
    writer.flush()
    return list(apiserver.asked)


def test_a_profile_is_created_once_and_written_again_only_when_nodes_show_something_else(
    writer: ProfileWriter, apiserver: Profiles
) -> None:
    assert write(writer, apiserver, pool_node()) == [PATH, f"{PATH}/status"]
    (known,) = apiserver.known()
    assert (known.name, known.spec.node_pool, known.spec.instance_type) == (NAME, "gpu", TYPE)
    assert known.status.learned is not None
    assert (known.status.learned.node, known.status.learned.seen) == ("n1", "2026-01-01T12:00:00Z")

    assert not write(writer, apiserver, pool_node())
    assert not write(writer, apiserver, pool_node("n2"))
    assert not write(writer, apiserver), "nothing is forgotten with the last node"
    assert write(writer, apiserver, pool_node(labels={FAMILY: "changed"})) == [f"{PATH}/status"]
    assert not write(writer, apiserver, pool_node(labels={FAMILY: "changed"}))


def test_a_deleted_profile_is_created_again_while_its_nodes_exist(writer: ProfileWriter, apiserver: Profiles) -> None:
    write(writer, apiserver, pool_node())
    apiserver.objects.clear()
    assert not write(writer, apiserver)
    assert write(writer, apiserver, pool_node()) == [PATH, f"{PATH}/status"]


def test_the_spec_of_a_declared_profile_stays_untouched(writer: ProfileWriter, apiserver: Profiles) -> None:
    spec = {"nodePool": "gpu", "instanceType": TYPE, "labels": {FAMILY: "declared"}}
    apiserver.objects[PATH] = {"metadata": {"name": NAME}, "spec": spec}
    assert write(writer, apiserver, pool_node()) == [f"{PATH}/status"]
    assert apiserver.objects[PATH]["spec"] == spec


@pytest.mark.parametrize("failures", [1, 2])
def test_a_refused_write_is_tried_in_the_next_round(writer: ProfileWriter, apiserver: Profiles, failures: int) -> None:
    """The nodes are the same objects, as in rounds in which nothing changed."""
    snapshot = a_snapshot(pool_node())
    apiserver.refused = failures
    for _ in range(failures):
        writer.write(snapshot, NOW)
        writer.flush()
        assert not apiserver.known()
    writer.write(snapshot, NOW)
    writer.flush()
    assert len(apiserver.known()) == 1


def test_rounds_without_a_change_of_nodes_or_profiles_read_nothing(writer: ProfileWriter, apiserver: Profiles) -> None:
    snapshot = a_snapshot(pool_node())
    for _ in range(3):
        writer.write(snapshot, NOW)
        writer.flush()
    assert apiserver.asked == [PATH, f"{PATH}/status"], "written, though the watch shows it later"

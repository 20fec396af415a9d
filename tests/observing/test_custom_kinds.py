"""Custom kinds that a cluster may lack are observed once they are defined, and cause no requests before."""

from plimsoll.labels import SCHEMA, SCHEMA_VERSION
from plimsoll.observe.cluster import DEFINITIONS, NODE_CLAIMS, NODES, NewerSchemaError, Observer, Stores
from tests.awaiting import await_condition
from tests.observing.apiserver import FakeApiserver

CLAIMS = NODE_CLAIMS


def define(cluster: FakeApiserver, definition: str | None, revision: int = 1) -> None:
    cluster.put(DEFINITIONS.path, str(definition), metadata={"generation": revision})


def test_kinds_of_a_newer_release_are_not_planned_on(cluster: FakeApiserver, observer: Observer) -> None:
    cluster.put(DEFINITIONS.path, "workspaces.plimsoll.dev", metadata={"labels": {SCHEMA: str(SCHEMA_VERSION)}})
    start(observer)
    observer.snapshot()
    cluster.put(DEFINITIONS.path, "workspaces.plimsoll.dev", metadata={"labels": {SCHEMA: str(SCHEMA_VERSION + 1)}})

    def refusal() -> str:
        try:
            observer.snapshot()
        except NewerSchemaError as error:
            return error.message
        return ""

    assert "workspaces.plimsoll.dev" in await_condition(refusal, 120, "kinds of a newer release")


def start(observer: Observer) -> None:
    observer.start()
    observer.wait_synced(120)


def claims(observer: Observer) -> list[str]:
    return [claim.name for claim in observer.snapshot().node_claims]


def test_an_undefined_kind_is_empty_and_never_requested(cluster: FakeApiserver, observer: Observer) -> None:
    define(cluster, "certificates.cert-manager.io")
    start(observer)
    assert claims(observer) == []
    assert not cluster.seen(CLAIMS.path, watch=False)


def test_a_kind_is_observed_when_it_is_defined(cluster: FakeApiserver, observer: Observer) -> None:
    start(observer)
    cluster.serve(CLAIMS.path)
    cluster.put(CLAIMS.path, "first")
    define(cluster, CLAIMS.definition)
    await_condition(lambda: claims(observer) == ["first"], 120)
    await_condition(lambda: cluster.watching(CLAIMS.path), 120)
    cluster.put(CLAIMS.path, "second")
    await_condition(lambda: claims(observer) == ["first", "second"], 120)


def test_a_kind_is_awaited_until_its_definition_is_established(cluster: FakeApiserver, observer: Observer) -> None:
    start(observer)
    define(cluster, CLAIMS.definition)
    await_condition(lambda: cluster.seen(CLAIMS.path, watch=False), 120, "a list that finds it not yet served")
    assert claims(observer) == []
    cluster.serve(CLAIMS.path)
    cluster.put(CLAIMS.path, "first")
    define(cluster, CLAIMS.definition, revision=2)
    await_condition(lambda: claims(observer) == ["first"], 120)


def test_a_kind_without_our_version_is_not_requested(cluster: FakeApiserver, observer: Observer) -> None:
    define(cluster, CLAIMS.definition)
    observer.start()
    observer.wait_synced(120)
    asked = len(cluster.seen(CLAIMS.path, watch=False))
    assert not observer.wait(0.0, 0.0, timeout=0.5)
    assert len(cluster.seen(CLAIMS.path, watch=False)) == asked


def test_a_deleted_kind_is_empty_until_it_is_defined_again(cluster: FakeApiserver, observer: Observer) -> None:
    cluster.serve(CLAIMS.path)
    cluster.put(CLAIMS.path, "first")
    define(cluster, CLAIMS.definition)
    start(observer)
    assert claims(observer) == ["first"]
    cluster.unserve(CLAIMS.path)
    cluster.delete(DEFINITIONS.path, str(CLAIMS.definition))
    await_condition(lambda: claims(observer) == [], 120)
    asked = len(cluster.seen(CLAIMS.path, watch=False))
    cluster.put(NODES.path, "later")
    await_condition(lambda: observer.snapshot().nodes, 120, "a change of another kind")
    assert len(cluster.seen(CLAIMS.path, watch=False)) == asked, "a kind that is not defined is not requested"
    cluster.serve(CLAIMS.path)
    cluster.put(CLAIMS.path, "second")
    define(cluster, CLAIMS.definition)
    await_condition(lambda: claims(observer) == ["second"], 120)


def test_without_our_own_kinds_the_foundation_is_named(cluster: FakeApiserver, observer: Observer) -> None:
    start(observer)
    assert any("apply the foundation stack" in warning for warning in observer.snapshot().warnings)


def test_objects_of_a_defined_kind_stay_if_the_apiserver_responds_404(
    cluster: FakeApiserver, observer: Observer
) -> None:
    """A starting apiserver may not serve a kind yet; its objects still exist."""
    cluster.serve(CLAIMS.path)
    cluster.put(CLAIMS.path, "first")
    define(cluster, CLAIMS.definition)
    start(observer)
    await_condition(lambda: cluster.watching(CLAIMS.path), 120)
    cluster.unserve(CLAIMS.path)
    await_condition(lambda: len(cluster.seen(CLAIMS.path, watch=False)) > 3, 120, "several lists in vain")
    assert claims(observer) == ["first"]
    assert any("NodeClaim: the watch is broken" in warning for warning in observer.snapshot().warnings)


def test_the_definition_of_every_custom_kind_is_read() -> None:
    """A kind whose definition is not read counts as one that the cluster does not serve."""
    names = {store.kind.definition for store in Stores()} - {None}
    assert len(names) > 5
    for name in names:
        assert DEFINITIONS.read({"metadata": {"name": name}, "spec": {}}) is not None, name

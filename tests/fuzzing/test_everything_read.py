"""Any object or file is either read or refused by name; there is no other error."""

import copy
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from plimsoll.apply.state import State
from plimsoll.cli import app
from plimsoll.errors import PlimsollError
from plimsoll.kube import Kubeconfig
from plimsoll.observe.cluster import Store, Stores
from plimsoll.observe.files import snapshot_from_files
from plimsoll.plan import plan as make_plan
from plimsoll.plan import validate
from plimsoll.plan.demand import ClusterStates
from plimsoll.plan.view import ClusterView
from plimsoll.report import Metrics, Reporter
from tests.applying.states import a_claim, a_state, live
from tests.fuzzing.damage import OBJECTS, damaged, is_json
from tests.reporting.test_reporter import Recording

NOW = datetime(2026, 1, 1, 0, 5, tzinfo=UTC)


def store_of(stores: Stores, obj: dict[str, Any]) -> Store[Any] | None:
    return next((each for each in stores if each.kind.name == obj.get("kind")), None)


@given(st.lists(damaged(OBJECTS), min_size=1, max_size=4))
def test_a_cluster_with_damaged_objects_is_planned_or_refused_by_name(found: list[dict[str, Any]]) -> None:
    stores = Stores()
    for obj in [*copy.deepcopy(OBJECTS), *found]:
        store = store_of(stores, obj)
        # An apiserver gives every object a name, which is a text, in metadata, which is a map.
        metadata = obj.get("metadata")
        if store is None or not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
            continue
        key, entry = store.read(orjson.loads(orjson.dumps(obj)) if is_json(obj) else obj)
        store.put(key, entry)
        for each in store.unreadable():
            assert each.ref.name in each.message, "what is refused is named"
    try:
        snapshot = stores.snapshot()
    except PlimsollError as error:
        assert error.message
        return
    view = ClusterView(snapshot)
    made = make_plan(view, validate(view), NOW)
    with closing(Reporter(Recording())) as reporter:
        reporter.report(view, made, NOW)
        reporter.flush()
    # The last nets of validation and of pods' requests are for what no check foresees: none is known.
    assert not [each.message for each in made.verdicts if "cannot be validated" in each.message]
    reports = [each.status for each in made.demands if each.status is not None]
    assert not [why for each in reports for why in each.reasons if "cannot be read (" in why]
    metrics = Metrics()
    metrics.seen(snapshot, NOW, ClusterStates().of(snapshot).accounts.values())
    metrics.planned(made, 0.0, NOW)
    assert {each.workspace.name for each in made.verdicts} <= {
        *(each.name for each in snapshot.workspaces),
        *(each.ref.name for each in snapshot.invalid_workspaces),
    }


@given(damaged(OBJECTS))
def test_a_file_is_read_or_refused_by_name(tmp_path_factory: pytest.TempPathFactory, obj: dict[str, Any]) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed.yaml"
    path.write_text(yaml.safe_dump(obj), encoding="utf-8", errors="surrogatepass")
    try:
        view = ClusterView(snapshot_from_files([str(path)]))
        make_plan(view, validate(view), NOW)
    except PlimsollError as error:
        assert str(path) in str(error), "the file is named"


@given(damaged([dict(a_state(live(a_claim("a"))).deployment)]))
def test_a_state_is_read_or_refused_with_its_stack(deployment: dict[str, Any]) -> None:
    try:
        State.read("capacity-prod-0", orjson.dumps({"version": 3, "deployment": deployment}, default=str), None)
    except PlimsollError as error:
        assert "capacity-prod-0" in str(error)
    except (TypeError, orjson.JSONEncodeError):
        assert not is_json(deployment)


KUBECONFIG = {
    "current-context": "c",
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9", "certificate-authority": "ca.crt"}}],
    "users": [{"name": "u", "user": {"tokenFile": "token"}}],
}


@given(damaged([KUBECONFIG]))
def test_a_kubeconfig_is_read_or_refused(content: dict[str, Any]) -> None:
    try:
        Kubeconfig.read(yaml.safe_dump(content) + "\n# a text\n")
    except PlimsollError as error:
        assert error.message


@given(damaged([{"clusters": [{"name": "a", "kubeconfig": "a.yaml", "context": "a"}, {"name": "b"}]}]))
def test_a_fleet_is_read_or_refused_with_its_file(
    tmp_path_factory: pytest.TempPathFactory, content: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "fleet.yaml"
    path.write_text(yaml.safe_dump(content))
    nowhere = {"KUBECONFIG": str(path.with_name("missing"))}  # of a cluster without a kubeconfig of its own
    done = CliRunner().invoke(app, ["status", "--fleet", str(path)], env=nowhere)
    if done.exception is not None:
        assert isinstance(done.exception, PlimsollError), repr(done.exception)
        assert str(path) in str(done.exception)

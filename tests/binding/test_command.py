"""The options and settings of `plimsoll bind`, and its errors if they are wrong."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from plimsoll.bind import ShareBinder, read_settings
from plimsoll.cli import app
from plimsoll.components import ShareBinder as ComponentOfBinder
from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection, ConnectionFailedError
from plimsoll.model.api import BinderSettings
from tests.components.declaring import declared, manifest


def test_options_override_the_file(tmp_path: Path) -> None:
    file = tmp_path / "bind.yaml"
    file.write_text("schedulerName: one\nreservation: {image: 'a:1', graceSeconds: 5}\n")
    settings = read_settings(file, {"image": "b:2", "namespace": None, "serviceAccount": "own"}, "two")
    assert settings.scheduler_name == "two"
    reservation = settings.reservation
    assert (reservation.image, reservation.service_account, reservation.grace_seconds) == ("b:2", "own", 5)
    assert reservation.namespace == "kai-resource-reservation"
    assert read_settings(file, {}, None).scheduler_name == "one"
    assert read_settings(None, {"image": "b:2"}, None).scheduler_name == "plimsoll"


@pytest.mark.parametrize(
    ("text", "output_text"),
    [
        ("", "no image for reservations"),
        ("- a\n", "a mapping is needed"),
        ("reservation: x\n", "a mapping is needed"),
        ("reservation: {image: 'a:1', gracesSeconds: 5}\n", "reservation.gracesSeconds: unknown field"),
        ("reservation: {image: 'a:1', deadlineSeconds: soon}\n", "bind.yaml: reservation.deadlineSeconds"),
        ("reservation: {image: 'a:1', namespace: ''}\n", "reservation.namespace"),
        ("reservation: {image: 'a:1', serviceAccount: ''}\n", "reservation.serviceAccount"),
        ("a: [\n", "settings"),
    ],
)
def test_wrong_settings_are_named(tmp_path: Path, text: str, output_text: str) -> None:
    file = tmp_path / "bind.yaml"
    file.write_text(text)
    with pytest.raises(PlimsollError) as raised:
        read_settings(file, {}, None)
    assert output_text in raised.value.message


@pytest.mark.parametrize(
    ("option", "named"),
    [
        ("--namespace", "--namespace"),
        ("--reservation-namespace", "reservation.namespace"),
        ("--reservation-service-account", "reservation.serviceAccount"),
    ],
)
def test_an_empty_name_is_refused_before_the_cluster_is_asked(option: str, named: str) -> None:
    result = CliRunner().invoke(app, ["bind", "--image", "a:1", option, ""])
    assert isinstance(result.exception, PlimsollError)
    assert named in result.exception.message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlimsollError, match=r"missing\.yaml"):
        read_settings(tmp_path / "missing.yaml", {}, None)


def test_the_declared_binder_has_its_settings_and_outlasts_an_apiserver_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[object] = []
    made = declared(lambda: ComponentOfBinder("b", {"image": "a:1", "namespace": "own", "scheduler_name": "two"}))
    arguments = manifest(made, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]

    class FlakyLease:
        def __init__(self, *_: object) -> None:
            self.tries = 0

        def acquire(self, *_: object) -> None:
            self.tries += 1
            if self.tries < 3:
                raise ConnectionFailedError("unreachable")
            done.append("acquired")

        def release(self) -> None:
            done.append("released")

    class RecordingBinder(ShareBinder):
        def __init__(self, connection: Connection, settings: BinderSettings) -> None:
            super().__init__(connection, settings)
            done.append((settings.scheduler_name, settings.reservation.namespace, settings.reservation.image))

        def run(self) -> None:
            done.append("ran")

    monkeypatch.setattr("plimsoll.apply.Lease", FlakyLease)
    monkeypatch.setattr("plimsoll.bind.refuse_beside_kai", lambda _: None)
    monkeypatch.setattr("plimsoll.cli.bind._stop_on_signal", lambda _: None)
    monkeypatch.setattr("plimsoll.bind.ShareBinder", RecordingBinder)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "{current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}],"
        " clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}]}"
    )
    result = CliRunner().invoke(app, [*arguments, "--kubeconfig", str(kubeconfig)])
    assert result.exit_code == 0, result.output
    assert done == [("two", "own", "a:1"), "acquired", "ran", "released"]

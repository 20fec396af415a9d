"""The controllers of a sandbox: which run, their configuration, and the webhooks that the apiserver calls."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.sandbox import CERTIFICATE, KEY, Folder, Settings
from plimsoll.sandbox.parts import part
from plimsoll.sandbox.processes import JOB_SET, LEADER_WORKER_SET, TRAINER, Controller, wanted

CONTROLLERS = wanted(Settings(trainer=True))


def ports_of(controller: Controller) -> dict[str, int]:
    return dict(zip(controller.ports, (7001, 7002), strict=True))


def configuration_of(controller: Controller, folder: Folder) -> dict[str, Any]:
    (flag,) = controller.process(folder, ports_of(controller)).command[1:]
    found: dict[str, Any] = yaml.safe_load(Path(flag.removeprefix("--config=")).read_text())
    return found


def declare_webhooks(controller: Controller, *resources: str) -> None:
    """The module's own manifest: one webhook for each kind of objects."""
    webhooks = [
        {
            "name": f"{resource}.example.org",
            "clientConfig": {"service": {"name": "s", "namespace": "system", "path": f"/validate-{resource}"}},
            "rules": [{"resources": [resource]}],
        }
        for resource in resources
    ]
    cached = part(controller.name).cached
    cached.mkdir(parents=True)
    manifest = {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "validating"}, "webhooks": webhooks}
    (cached / "webhooks.yaml").write_text(yaml.safe_dump_all([manifest]))


def webhooks_of(controller: Controller, folder: Folder) -> dict[str, dict[str, Any]]:
    (written,) = yaml.safe_load_all(controller.write_webhooks(folder, ports_of(controller)).read_text())
    assert written["metadata"]["name"] == f"{controller.name}-validating"
    return {each["name"].partition(".")[0]: each for each in written["webhooks"]}


def test_trainer_and_jobset_run_if_they_are_requested() -> None:
    assert wanted(Settings()) == (LEADER_WORKER_SET,)
    assert wanted(Settings(lws=False)) == ()
    assert CONTROLLERS == (LEADER_WORKER_SET, JOB_SET, TRAINER)


def test_no_two_controllers_share_a_port() -> None:
    names = [name for controller in CONTROLLERS for name in controller.ports]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("controller", CONTROLLERS, ids=lambda each: each.name)
def test_a_controller_serves_with_the_sandboxs_certificate_on_loopback(controller: Controller, folder: Folder) -> None:
    configuration, process = configuration_of(controller, folder), controller.process(folder, ports_of(controller))
    assert configuration["webhook"]["port"] == process.port == 7001
    assert configuration["webhook"]["host"] == "127.0.0.1"
    assert configuration["health"]["healthProbeBindAddress"] == "127.0.0.1:7002"
    assert configuration[controller.certificates] == {"enable": False}
    # Where controller-runtime looks for them below TMPDIR.
    below = Path(process.environment["TMPDIR"]) / "k8s-webhook-server" / "serving-certs"
    assert configuration["webhook"].get("certDir", str(below)) == str(below)
    for name, source in (("tls.crt", CERTIFICATE), ("tls.key", KEY)):
        assert (below / name).read_bytes() == (folder.certificates / source).read_bytes()


def test_trainers_configuration_has_no_field_for_the_certificates_folder(folder: Folder) -> None:
    assert "certDir" not in configuration_of(TRAINER, folder)["webhook"]
    assert "certDir" in configuration_of(JOB_SET, folder)["webhook"]


def test_webhooks_for_pods_see_only_the_controllers_own(folder: Folder) -> None:
    declare_webhooks(JOB_SET, "jobsets", "pods")
    webhooks = webhooks_of(JOB_SET, folder)
    assert webhooks["pods"]["clientConfig"]["url"] == "https://127.0.0.1:7001/validate-pods"
    own = {"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}
    assert webhooks["pods"]["objectSelector"] == {"matchExpressions": [own]}
    assert "objectSelector" not in webhooks["jobsets"]


def test_a_controller_without_pod_webhooks_is_called_for_all_its_objects(folder: Folder) -> None:
    declare_webhooks(TRAINER, "trainjobs")
    assert "objectSelector" not in webhooks_of(TRAINER, folder)["trainjobs"]

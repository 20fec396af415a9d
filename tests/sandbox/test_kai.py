"""The KAI Scheduler of a sandbox: where its programs listen, their accounts, and the pods that its webhooks see."""

import yaml

from plimsoll.sandbox import Folder, Settings
from plimsoll.sandbox.parts import find_programs, part, part_names
from plimsoll.sandbox.processes import kai

PORTS = {name: 7001 + number for number, name in enumerate(kai.ports())}


def test_it_is_installed_and_run_only_on_request() -> None:
    assert "kai-scheduler" not in part_names()
    assert {found.name for found in find_programs(part_names(kai=True))} >= {"kai", "crds"}
    assert not Settings().kai


def test_its_programs_and_definitions_are_of_one_version() -> None:
    assert part("kai-scheduler").version == part("kai").version


def test_each_program_listens_on_its_port_of_loopback_alone(folder: Folder) -> None:
    started = kai.processes(folder, PORTS)
    assert {each.name: each.port for each in started} == PORTS
    for each in started:
        assert each.ready_url is not None
        assert f"//127.0.0.1:{each.port}/" in each.ready_url
        listening = [flag for flag in each.command if "address" in flag]
        assert all(flag.endswith(("=0", f"=127.0.0.1:{each.port}")) for flag in listening), listening


def test_each_program_has_the_role_of_its_account(folder: Folder) -> None:
    (bindings,) = (path for path in kai.write_objects(folder) if path.name == "kai-bindings.yaml")
    found = {each["subjects"][0]["name"]: each["roleRef"]["name"] for each in yaml.safe_load_all(bindings.read_text())}
    assert found == {
        "admission": "kai-admission",
        "binder": "kai-binder",
        "pod-grouper": "kai-podgrouper",
        "podgroup-controller": "kai-podgroup-controller",
        "queue-controller": "queuecontroller",
        "scheduler": "kai-scheduler",
    }


def test_its_webhooks_see_only_its_pods(folder: Folder) -> None:
    found = list(yaml.safe_load_all(kai.write_webhooks(folder, PORTS).read_text()))
    for configuration, path in zip(found, ("/mutate--v1-pod", "/validate--v1-pod"), strict=True):
        (webhook,) = configuration["webhooks"]
        assert webhook["clientConfig"]["url"] == f"https://127.0.0.1:{PORTS['kai-admission']}{path}"
        assert [each["expression"] for each in webhook["matchConditions"]] == [
            "object.spec.schedulerName == 'kai-scheduler'"
        ]

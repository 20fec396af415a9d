"""Pods that share GPUs by KAI's annotations become pods with claims, and everything that is lost is named."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.kai import Rewritten, Sharing, to_claims
from plimsoll.model.cluster import Pod
from plimsoll.model.dra import ResourceClaimTemplateSpec
from plimsoll.model.kai import GPUShare
from tests.command import plimsoll
from tests.golden import assert_golden

FOLDER = Path(__file__).parent / "golden"
GPUS_80 = Sharing("memory", 81_920)
CONTAINER = {"name": "main", "image": "own:1"}


def a_pod(annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "team", "annotations": annotations or {}}
    given = {"containers": [dict(CONTAINER)], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": given}


def with_gpus(count: int, name: str = "main") -> dict[str, Any]:
    return {"name": name, "image": "own:1", "resources": {"limits": {"nvidia.com/gpu": count}}}


def rewritten(manifest: dict[str, Any], sharing: Sharing = GPUS_80) -> Rewritten:
    (found,) = to_claims([manifest], sharing)
    return found


def claimed(manifest: dict[str, Any], sharing: Sharing = GPUS_80) -> dict[str, Any]:
    """The `devices` of the only template."""
    template, _ = rewritten(manifest, sharing).manifests
    devices: dict[str, Any] = template["spec"]["spec"]["devices"]
    return devices


def lost(manifest: dict[str, Any], sharing: Sharing = GPUS_80) -> dict[str, bool]:
    """Fields that are lost, with whether they are refused."""
    return {loss.field: loss.refused for loss in rewritten(manifest, sharing).losses.found}


@pytest.mark.parametrize("resource", ["amd.com/gpu", "gpu.intel.com/xe"])
def test_pods_with_gpus_of_other_vendors_stay_as_they_are(resource: str) -> None:
    pod = a_pod(containers=[CONTAINER | {"resources": {"limits": {resource: 2}}}])
    found = rewritten(pod)
    assert (found.manifests, found.losses.found) == ((pod,), [])


@pytest.mark.parametrize(
    ("resource", "remedy"),
    [
        ("nvidia.com/mig-3g.40gb", "claim 2 of mig.nvidia.com whose profile is '3g.40gb'"),
        ("nvidia.com/mig-1g.10gb.me", "whose profile is '1g.10gb+me'"),
        ("nvidia.com/gpu.shared", "write the claim yourself"),
    ],
)
def test_parts_of_gpus_that_stay_are_named(resource: str, remedy: str) -> None:
    pod = a_pod(containers=[CONTAINER | {"resources": {"limits": {resource: 2}}}])
    found = rewritten(pod)
    assert found.manifests == (pod,)
    (loss,) = found.losses.found
    assert not loss.refused
    assert loss.why.startswith(resource)
    assert remedy in loss.remedy


def test_workloads_are_those_of_the_golden_file() -> None:
    given = list(yaml.safe_load_all((FOLDER / "shares.yaml").read_text()))
    made = [manifest for each in to_claims(given, GPUS_80) for manifest in each.manifests]
    assert_golden(FOLDER / "claims.yaml", made)
    again = to_claims(made, GPUS_80)
    assert [manifest for each in again for manifest in each.manifests] == made
    assert not [loss for each in again for loss in each.losses.found]


def test_what_is_made_is_valid_and_asks_for_no_gpu_besides() -> None:
    for each in yaml.safe_load_all((FOLDER / "claims.yaml").read_text()):
        if each["kind"] == "ResourceClaimTemplate":
            ResourceClaimTemplateSpec.model_validate(each["spec"]["spec"])
        elif each["kind"] == "Pod":
            assert Pod.read(each).extended_resources == ()


@pytest.mark.parametrize(
    ("mode", "annotations", "amounts"),
    [
        ("memory", {"gpu-fraction": "0.5"}, {"memory": "40Gi"}),
        ("memory", {"gpu-fraction": "0.33"}, {"memory": "27033Mi"}),
        ("unlimited", {"gpu-fraction": "0.5"}, {"memory": "40Gi"}),
        ("memory", {"gpu-memory": "2000"}, {"memory": "2000Mi"}),
        ("4", {"gpu-fraction": "0.5"}, {"shares": "2"}),
        ("4", {"gpu-fraction": "0.3"}, {"shares": "2"}),
        ("4", {"gpu-memory": "2000"}, {"memory": "2000Mi"}),
    ],
)
def test_a_share_is_an_amount_of_what_the_driver_divides(
    mode: str, annotations: dict[str, str], amounts: dict[str, str]
) -> None:
    (request,) = claimed(a_pod(annotations), Sharing(mode, 81_920))["requests"]
    assert request["exactly"]["capacity"]["requests"] == amounts


@pytest.mark.parametrize("number", [2, 3, 7])
def test_as_many_pods_share_a_gpu_as_before(number: int) -> None:
    odd = Sharing("memory", 23_033)
    taken = odd.of_share(GPUShare(milli=Fraction(1000, number)))["memory"]
    assert number * int(taken.removesuffix("Mi")) <= 23_033


def test_whole_gpus_are_claimed_by_the_containers_that_request_them() -> None:
    pod = a_pod(containers=[with_gpus(1, "a"), dict(CONTAINER), with_gpus(3, "b")])
    template, made = rewritten(pod).manifests
    requests = template["spec"]["spec"]["devices"]["requests"]
    assert [(each["name"], each["exactly"]["count"]) for each in requests] == [("a", 1), ("b", 3)]
    uses = [each.get("resources", {}) for each in made["spec"]["containers"]]
    assert uses == [
        {"claims": [{"name": "gpus", "request": "a"}]},
        {},
        {"claims": [{"name": "gpus", "request": "b"}]},
    ]


def test_a_driver_that_counts_shares_gives_a_whole_gpu_for_all_of_them() -> None:
    """The default of a claim is one share."""
    devices = claimed(a_pod(containers=[with_gpus(2)]), Sharing("4"))
    assert devices["requests"][0]["exactly"]["capacity"] == {"requests": {"shares": "4"}}
    assert devices["constraints"] == [{"distinctAttribute": "gpu.nvidia.com/uuid"}]
    assert "constraints" not in claimed(a_pod(containers=[with_gpus(2)]))


def test_shares_of_several_gpus_are_of_different_ones() -> None:
    devices = claimed(a_pod({"gpu-memory": "2000", "gpu-fraction-num-devices": "2"}))
    assert devices["requests"][0]["exactly"]["count"] == 2
    assert devices["constraints"] == [{"distinctAttribute": "gpu.nvidia.com/uuid"}]


def test_templates_of_one_namespace_have_names_of_their_own() -> None:
    job = {**a_pod({"gpu-memory": "1"}), "kind": "Job"}
    other = {**a_pod({"gpu-memory": "1"}), "metadata": {**job["metadata"], "namespace": "other"}}
    there: dict[str, Any] = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "a-gpus", "namespace": "team"},
        "spec": {"spec": {}},
    }
    found = to_claims([there, a_pod({"gpu-memory": "1"}), job, other], GPUS_80)
    names = [each.manifests[0]["metadata"]["name"] for each in found]
    assert names == ["a-gpus", "a-gpus-2", "a-gpus-3", "a-gpus"]


@pytest.mark.parametrize(
    ("pod", "sharing", "field"),
    [
        (a_pod({"gpu-fraction": "0.5"}), Sharing(), "metadata.annotations[gpu-fraction]"),
        (a_pod({"gpu-memory": "2000"}), Sharing("disabled"), "metadata.annotations[gpu-memory]"),
        (a_pod({"gpu-fraction": "2"}), GPUS_80, "metadata"),
        (a_pod({"gpu-fraction": "0.5"}, nodeName="n"), GPUS_80, ""),
        (a_pod({"gpu-fraction": "0.5"}, resourceClaims=[{"name": "nic"}]), GPUS_80, "metadata"),
        (a_pod(initContainers=[with_gpus(1)]), GPUS_80, "spec.initContainers"),
        (a_pod({"nvidia.com/container.main.gpu-memory": "1"}), GPUS_80, "metadata.annotations"),
        (a_pod({"tensor-fusion.ai/vram-request": "1Gi"}), GPUS_80, "metadata.annotations"),
    ],
)
def test_what_has_no_form_in_claims_is_refused_and_stays(pod: dict[str, Any], sharing: Sharing, field: str) -> None:
    assert lost(pod, sharing) == {field: True}
    assert rewritten(pod, sharing).manifests == (pod,)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"metadata": {"labels": {"kai.scheduler/queue": "q"}}}, "metadata.labels[kai.scheduler/queue]"),
        ({"spec": {"schedulerName": "kai-scheduler"}}, "spec.schedulerName"),
        ({"spec": {"nodeSelector": {"nvidia.com/gpu.product": "L4"}}}, "spec.nodeSelector[nvidia.com/gpu.product]"),
        ({"annotations": {"mps": "true"}}, "metadata.annotations[mps]"),
    ],
)
def test_what_claims_do_otherwise_is_named(change: dict[str, Any], field: str) -> None:
    pod = a_pod({"gpu-fraction": "0.5", **change.get("annotations", {})}, **change.get("spec", {}))
    pod["metadata"] |= change.get("metadata", {})
    assert lost(pod) == {field: False}


@pytest.mark.parametrize(
    ("pod", "mode", "field"),
    [
        (a_pod({"gpu-fraction": "0.3"}), "4", "metadata.annotations[gpu-fraction]"),
        (a_pod({"gpu-memory": "2000"}), "4", "metadata.annotations[gpu-memory]"),
        (a_pod(containers=[with_gpus(1)]), "unlimited", "spec.containers"),
        (a_pod({"gpu-fraction": "0.5"}), "4", None),
        (a_pod(containers=[with_gpus(1)]), "memory", None),
    ],
)
def test_what_the_driver_divides_otherwise_is_named(pod: dict[str, Any], mode: str, field: str | None) -> None:
    assert lost(pod, Sharing(mode, 81_920)) == ({} if field is None else {field: False})


def test_the_command_prints_objects_and_losses(tmp_path: Path) -> None:
    arguments = ("import", "kai", "--to-claims", "--gpu-memory", "80Gi")
    done = plimsoll(*arguments, str(FOLDER / "shares.yaml"))
    assert done.returncode == 0, done.stderr
    assert list(yaml.safe_load_all(done.stdout)) == list(yaml.safe_load_all((FOLDER / "claims.yaml").read_text()))
    assert "warning: Deployment team/chat: spec.template.spec.schedulerName" in done.stderr
    file = tmp_path / "claims.yaml"
    file.write_text(done.stdout)
    again = plimsoll(*arguments, str(file))
    assert (again.stdout, again.stderr) == (done.stdout, "")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((), 1),
        (("--to-claims",), 2),
        (("--to-claims", "--consumable-shares", "all"), 1),
        (("--to-claims", "--consumable-shares", "0"), 1),
        (("--to-claims", "--gpu-memory", "much"), 1),
        (("--to-claims", "--consumable-shares", "4"), 0),
    ],
)
def test_options(options: tuple[str, ...], code: int, tmp_path: Path) -> None:
    """Without the memory of a GPU, fractions are refused."""
    file = tmp_path / "pod.yaml"
    file.write_text(yaml.safe_dump(a_pod({"gpu-fraction": "0.5"})))
    done = plimsoll("import", "kai", str(file), *options)
    assert done.returncode == code, done.stderr
    assert bool(done.stdout) == (code != 1)


def test_files_are_named_as_for_other_commands() -> None:
    file = str(FOLDER / "shares.yaml")
    runs = [
        plimsoll("import", "kai", "--to-claims", "--gpu-memory", "80Gi", *given) for given in ((file,), ("-f", file))
    ]
    assert runs[0].stdout
    assert runs[0].stdout == runs[1].stdout
    assert "no files are named" in plimsoll("import", "kaito").stderr

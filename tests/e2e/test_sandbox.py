import os
import shutil
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from plimsoll.errors import PlimsollError
from plimsoll.kube import RequestError
from plimsoll.sandbox import Sandbox
from plimsoll.sandbox.nodes import NodeCounts, make_nodes, read_node_list
from tests.awaiting import await_condition
from tests.e2e.cluster.conditions import is_ready
from tests.e2e.cluster.kube import Kube, Manifest
from tests.interrupts import hearing_interrupts

pytestmark = pytest.mark.e2e

Connect = Callable[..., Kube]


@pytest.fixture
def sandbox(sandbox_home: Path) -> Iterator[Sandbox]:
    """A sandbox that the test may damage; not started."""
    one = Sandbox.named(f"t-{uuid.uuid4().hex[:6]}")
    yield one
    one.down()


@pytest.fixture(scope="module")
def damaged(sandbox_home: Path) -> Iterator[Sandbox]:
    """A sandbox that several tests damage. Each starts it, which starts anew what an earlier one ended."""
    one = Sandbox.named(f"t-{uuid.uuid4().hex[:6]}")
    yield one
    one.down()


def processes_of(sandbox: Sandbox) -> list[psutil.Process]:
    """Processes whose command line names the sandbox's folder or the sandbox."""
    marks = (str(sandbox.folder.path), sandbox.name)
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if any(mark in word for word in words for mark in marks) and process.pid != os.getpid():
            found.append(process)
    return found


def a_config_map(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"kept": "yes"}}


def cli(*arguments: str) -> "subprocess.Popen[str]":
    command = [*hearing_interrupts("from plimsoll.cli import main; main()"), "sandbox", *arguments]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_two_sandboxes_run_side_by_side(byo_sandbox: Sandbox, nap_sandbox: Sandbox, kube: Connect) -> None:
    kube(byo_sandbox).apply(a_config_map("only-here"))

    assert kube(byo_sandbox).get("v1", "ConfigMap", "only-here") is not None
    assert kube(nap_sandbox).get("v1", "ConfigMap", "only-here") is None


def test_up_of_a_running_sandbox_changes_nothing(byo_sandbox: Sandbox) -> None:
    before = byo_sandbox.state()

    assert byo_sandbox.up(karpenter=False, lws=False) is False
    assert byo_sandbox.state() == before


def test_its_programs_have_the_callers_settings_of_memory(byo_sandbox: Sandbox) -> None:
    state = byo_sandbox.state()
    assert state is not None
    (apiserver,) = [each for each in state.processes if each.name == "kube-apiserver"]
    environment = psutil.Process(apiserver.pid).environ()
    assert environment["GOGC"] == os.environ["GOGC"]
    assert "PLIMSOLL_HOME" not in environment, "nothing else of the caller"


def test_up_with_other_settings_of_a_running_sandbox_is_refused(byo_sandbox: Sandbox) -> None:
    with pytest.raises(PlimsollError, match="karpenter=False"):
        byo_sandbox.up(karpenter=True)


def test_only_a_sandbox_with_karpenter_knows_nodeclaims(
    byo_sandbox: Sandbox, nap_sandbox: Sandbox, kube: Connect
) -> None:
    with pytest.raises(RequestError) as refused:
        kube(byo_sandbox).list("karpenter.sh/v1", "NodeClaim")

    assert refused.value.code == 404
    assert kube(nap_sandbox).list("karpenter.sh/v1", "NodeClaim") == []


def test_the_controller_may_do_only_what_roles_give_it(byo_sandbox: Sandbox, kube: Connect) -> None:
    controller = kube(byo_sandbox, "controller")
    with pytest.raises(RequestError) as refused:
        controller.list("v1", "ConfigMap", "default")
    assert refused.value.code == 403

    subject = {"kind": "ServiceAccount", "namespace": "plimsoll-system", "name": "plimsoll"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "views", "namespace": "default"},
        "roleRef": role,
        "subjects": [subject],
    }
    kube(byo_sandbox).apply(binding)

    def may_list() -> bool:
        try:
            return controller.list("v1", "ConfigMap", "default") is not None
        except RequestError:
            return False

    await_condition(may_list, message="the role binding takes effect")
    kube(byo_sandbox).delete("rbac.authorization.k8s.io/v1", "RoleBinding", "views")


def test_the_viewer_reads_nodes_but_no_secrets(byo_sandbox: Sandbox, kube: Connect) -> None:
    viewer = kube(byo_sandbox, "viewer")
    viewer.list("v1", "Node")

    with pytest.raises(RequestError) as refused:
        viewer.list("v1", "Secret", "default")
    assert refused.value.code == 403


def test_secrets_of_a_sandbox_are_for_its_owner_only(byo_sandbox: Sandbox) -> None:
    folder = byo_sandbox.folder

    for path in (folder.tokens, folder.passphrase, byo_sandbox.kubeconfig, byo_sandbox.controller_kubeconfig):
        assert path.stat().st_mode & 0o077 == 0, path
    assert folder.passphrase.read_text() not in byo_sandbox.environ().values()


def test_listed_nodes_become_ready_with_discovery_labels_and_are_created_once(
    byo_sandbox: Sandbox, kube: Connect, tmp_path: Path
) -> None:
    source = tmp_path / "nodes.csv"
    source.write_text(
        "sn,cpu_milli,memory_mib,gpu,model\na-1,8000,65536,2,T4\na-2,96000,786432,8,V100M32\na-3,4000,8192,0,\n"
    )

    made = make_nodes(byo_sandbox.kubeconfig, read_node_list(source))
    again = make_nodes(byo_sandbox.kubeconfig, read_node_list(source))

    assert (made, again) == (NodeCounts(3, 0), NodeCounts(0, 3))
    node = kube(byo_sandbox).get("v1", "Node", "a-2")
    assert node is not None
    assert is_ready(node)
    found = node["metadata"]["labels"]
    assert found["nvidia.com/gpu.product"] == "Tesla-V100-SXM2-32GB"
    assert (found["nvidia.com/gpu.count"], found["nvidia.com/gpu.memory"]) == ("8", "32768")
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    plain = kube(byo_sandbox).get("v1", "Node", "a-3")
    assert plain is not None
    assert "nvidia.com/gpu.present" not in plain["metadata"]["labels"]
    for name in ("a-1", "a-2", "a-3"):
        kube(byo_sandbox).delete("v1", "Node", name)


def test_karpenter_launches_a_claim_and_its_node_has_discovery_labels(nap_sandbox: Sandbox, kube: Connect) -> None:
    cluster = kube(nap_sandbox)
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "one"},
        "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [
                {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["Standard_NC24ads_A100_v4"]}
            ],
            "resources": {"requests": {"nvidia.com/gpu": "1"}},
        },
    }
    cluster.apply(claim)

    def node() -> Manifest | None:
        found = cluster.get("karpenter.sh/v1", "NodeClaim", "one") or {}
        name = found.get("status", {}).get("nodeName")
        one = cluster.get("v1", "Node", name) if name else None
        return one if one and is_ready(one) else None

    up = await_condition(node, 120, "the claim's node is Ready")
    assert up is not None
    found = up["metadata"]["labels"]
    assert found["nvidia.com/gpu.product"] == "NVIDIA-A100-80GB-PCIe"
    assert (found["nvidia.com/gpu.count"], found["nvidia.com/gpu.memory"]) == ("1", "81920")
    assert up["status"]["capacity"]["cpu"] == up["status"]["allocatable"]["cpu"]

    name = up["metadata"]["name"]
    cluster.patch("v1", "Node", name, {"metadata": {"annotations": {"sandbox.plimsoll.dev/fail": "true"}}})
    await_condition(lambda: not is_ready(cluster.get("v1", "Node", name)), 120, "the node is broken")
    cluster.patch("v1", "Node", name, {"metadata": {"annotations": {"sandbox.plimsoll.dev/fail": None}}})
    await_condition(lambda: is_ready(cluster.get("v1", "Node", name)), 120, "the node is whole again")

    cluster.delete("karpenter.sh/v1", "NodeClaim", "one")
    await_condition(lambda: cluster.get("v1", "Node", name) is None, 120, "the node goes with its claim")


def test_a_process_that_ends_is_shown_and_not_started_again(damaged: Sandbox) -> None:
    damaged.up(karpenter=False)
    state = damaged.state()
    assert state is not None
    psutil.Process(next(p.pid for p in state.processes if p.name == "kwok")).kill()

    def ended() -> bool:
        found = damaged.state()
        return found is not None and any(p.exit_code == -signal.SIGKILL for p in found.processes)

    await_condition(ended, message="the supervisor notes the end")
    status = cli("status", "--name", damaged.name)
    shown, _ = status.communicate(timeout=120)
    assert status.returncode == 1
    assert "ended with -9" in shown
    assert not [p for p in processes_of(damaged) if "kwok" in Path(p.exe()).name]


def test_a_sandbox_whose_supervisor_was_killed_is_restarted_with_its_data(damaged: Sandbox) -> None:
    damaged.up(karpenter=False)
    Kube(damaged.kubeconfig).apply(a_config_map("before"))
    state = damaged.state()
    assert state is not None

    psutil.Process(state.supervisor).kill()
    await_condition(lambda: not processes_of(damaged), message="its processes die with it")
    assert not damaged.is_up()
    with pytest.raises(PlimsollError, match="sandbox up"):
        damaged.environ()

    assert damaged.up(karpenter=False) is True
    assert Kube(damaged.kubeconfig).get("v1", "ConfigMap", "before") is not None


def test_down_leaves_no_process_and_no_file(damaged: Sandbox) -> None:
    damaged.up(karpenter=False)
    assert processes_of(damaged)

    assert damaged.down() is True

    assert processes_of(damaged) == []
    assert not damaged.folder.path.exists()
    assert damaged.down() is False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_up_leaves_nothing(sandbox: Sandbox, number: signal.Signals) -> None:
    up = cli("up", "--no-karpenter", "--name", sandbox.name)
    log = sandbox.folder.logs / "kube-apiserver.log"

    def starts() -> bool:
        assert up.poll() is None, f"ended with {up.returncode}: {up.communicate()}"
        return log.exists() and log.stat().st_size > 0

    try:
        await_condition(starts, message="the apiserver starts")
        up.send_signal(number)
        up.communicate(timeout=120)
    except AssertionError as error:  # the folder is removed before the report of the failure is made
        for each in sorted(sandbox.folder.logs.glob("*.log")):
            error.add_note(f"{each.name}: {each.read_text()[-2000:]}")
        raise
    finally:
        up.kill()

    assert up.returncode != 0
    await_condition(lambda: not processes_of(sandbox), message="no process is left")
    await_condition(lambda: not sandbox.folder.path.exists(), message="no file is left")


def test_a_sandbox_stops_with_its_caller(sandbox: Sandbox) -> None:
    program = (
        "import sys; from plimsoll.sandbox import Sandbox; "
        f"Sandbox.named({sandbox.name!r}).up(karpenter=False, stop_with_caller=True); "
        "print('up', flush=True); sys.stdin.read()"
    )
    maker = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert maker.stdout is not None
    assert maker.stdout.readline() == "up\n"

    maker.kill()
    maker.communicate()

    await_condition(lambda: not processes_of(sandbox), message="no process is left")
    await_condition(lambda: not sandbox.folder.path.exists(), message="no file is left")


@pytest.mark.parametrize("log", ["written", "on a full disk"])
def test_a_port_in_use_is_named_and_nothing_is_left(sandbox: Sandbox, log: str) -> None:
    if log == "on a full disk":
        sandbox.folder.create()
        (sandbox.folder.logs / "supervisor.log").symlink_to("/dev/full")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(PlimsollError, match=f"Port {port}") as refused:
            sandbox.up(karpenter=False, port=port)

    assert "--port" in str(refused.value)
    assert processes_of(sandbox) == []
    assert not sandbox.folder.path.exists()


def test_the_environment_of_a_sandbox_reaches_its_programs_and_cluster(byo_sandbox: Sandbox, tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path)} | byo_sandbox.environ()
    for program in ("kubectl", "pulumi", "pulumi-language-python"):
        path = shutil.which(program, path=environment["PATH"])
        assert path is not None
        assert Path(path).is_relative_to(byo_sandbox.folder.path)

    def output(*command: str) -> str:
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    assert "default" in output("kubectl", "get", "namespaces", "--output=name")
    assert output("pulumi", "whoami", "--verbose").count(str(byo_sandbox.folder.stacks)) == 1
    # Nothing went into the user's own folders.
    assert list(tmp_path.iterdir()) == []

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from weakref import WeakSet

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc
from structlog.testing import capture_logs

from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection, Interruption
from plimsoll.provider import Call, Properties, Secret, State, decode, encode, serve
from tests.provider.apiserver import Apiserver
from tests.provider.test_operations import PODS, a_config_map, a_pod

Engine = provider_pb2_grpc.ResourceProviderStub


def checked(engine: Engine, token: str, **request: Any) -> Any:
    return engine.Check(provider_pb2.CheckRequest(type=token, name="it", randomSeed=b"seed", **request))


def configured(engine: Engine, **settings: str) -> None:
    variables = {f"kubernetes:config:{key}": value for key, value in settings.items()}
    engine.Configure(provider_pb2.ConfigureRequest(variables=variables))


def test_it_listens_on_loopback_and_its_environment_has_the_port(cluster: Apiserver, tmp_path: Path) -> None:
    with serve(cluster.kubeconfig(tmp_path)) as served:
        assert served.environment == {"PULUMI_DEBUG_PROVIDERS": f"kubernetes:{served.port}"}
    assert cluster.requests == []


def test_check_names_the_object_and_puts_it_in_the_default_namespace(engine: Engine) -> None:
    configured(engine, namespace="team")
    news = encode({"apiVersion": "v1", "kind": "ConfigMap"})
    inputs = decode(checked(engine, "kubernetes:core/v1:ConfigMap", news=news).inputs)
    assert inputs["metadata"]["namespace"] == "team"
    assert inputs["metadata"]["name"].startswith("it-")
    again = decode(checked(engine, "kubernetes:core/v1:ConfigMap", news=news, olds=encode(inputs)).inputs)
    assert again == inputs


def test_check_keeps_secrets_secret(engine: Engine) -> None:
    news = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "hush"}}
    inputs = decode(checked(engine, "kubernetes:core/v1:Secret", news=encode(news)).inputs)
    assert inputs["data"] == Secret({"a": "aHVzaA=="})
    assert "stringData" not in inputs


@pytest.mark.parametrize(
    "token",
    [
        "kubernetes:core/v1:ConfigMapPatch",
        "kubernetes:core/v1:ConfigMapList",
        "kubernetes:helm.sh/v3:Release",
    ],
)
def test_unsupported_types_are_refused_by_name(engine: Engine, token: str) -> None:
    with pytest.raises(grpc.RpcError, match=f"{token}.*not supported"):
        checked(engine, token, news=encode(a_config_map()))


def test_unsupported_functions_and_components_are_refused_by_name(engine: Engine) -> None:
    with pytest.raises(grpc.RpcError, match="kubernetes:yaml:decode is not supported"):
        engine.Invoke(provider_pb2.InvokeRequest(tok="kubernetes:yaml:decode"))
    with pytest.raises(grpc.RpcError, match="kubernetes:yaml/v2:ConfigGroup is not supported"):
        engine.Construct(provider_pb2.ConstructRequest(type="kubernetes:yaml/v2:ConfigGroup", name="x"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"renderYamlToDirectory": "out"}, "renderYamlToDirectory"),
        ({"enableServerSideApply": "false"}, "enableServerSideApply"),
        ({"kubeconfig": "/nowhere/kubeconfig"}, "/nowhere/kubeconfig"),
        ({"context": "missing"}, "missing"),
    ],
)
def test_unsupported_settings_are_refused_by_name(engine: Engine, settings: dict[str, str], message: str) -> None:
    with pytest.raises(grpc.RpcError, match=message):
        configured(engine, **settings)


def test_the_kubeconfig_of_another_cluster_is_refused(engine: Engine, cluster: Apiserver, tmp_path: Path) -> None:
    text = cluster.kubeconfig(tmp_path).read_text()
    configured(engine, kubeconfig=text)
    with pytest.raises(grpc.RpcError, match="https://elsewhere"):
        configured(engine, kubeconfig=text.replace(cluster.url, "https://elsewhere"))


def test_the_provider_resource_is_checked_before_it_is_used(engine: Engine) -> None:
    news = encode({"renderYamlToDirectory": "out"})
    failures = engine.CheckConfig(provider_pb2.CheckRequest(news=news)).failures
    assert [failure.property for failure in failures] == ["renderYamlToDirectory"]
    assert not engine.CheckConfig(provider_pb2.CheckRequest(news=encode({"namespace": "a"}))).failures


def test_a_changed_cluster_replaces_the_provider_and_a_changed_token_does_not(
    engine: Engine, cluster: Apiserver, tmp_path: Path
) -> None:
    text = cluster.kubeconfig(tmp_path).read_text()

    def replaces(new: str) -> list[str]:
        olds, news = encode({"kubeconfig": text}), encode({"kubeconfig": new})
        return list(engine.DiffConfig(provider_pb2.DiffRequest(olds=olds, news=news)).replaces)

    assert replaces(text.replace(cluster.url, "https://elsewhere")) == ["kubeconfig"]
    assert replaces(text.replace("token: t", "token: other")) == []


def test_each_connection_has_its_own_settings(cluster: Apiserver, tmp_path: Path) -> None:
    with serve(cluster.kubeconfig(tmp_path)) as served:
        target = f"127.0.0.1:{served.port}"
        own_sockets = [("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel(target, own_sockets) as one, grpc.insecure_channel(target, own_sockets) as two:
            first, second = Engine(one), Engine(two)
            configured(first, namespace="first")
            configured(second, namespace="second")
            for engine, namespace in ((first, "first"), (second, "second")):
                news = encode({"apiVersion": "v1", "kind": "ConfigMap"})
                inputs = decode(checked(engine, "kubernetes:core/v1:ConfigMap", news=news).inputs)
                assert inputs["metadata"]["namespace"] == namespace


def test_connections_of_former_kubeconfigs_end(
    cluster: Apiserver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: WeakSet[Connection] = WeakSet()
    closed: list[bool] = []
    begin = Connection.__init__

    def begun(connection: Connection, *given: Any) -> None:
        begin(connection, *given)
        opened.add(connection)

    monkeypatch.setattr(Connection, "__init__", begun)
    monkeypatch.setattr(Connection, "close", lambda _: closed.append(True))
    kubeconfig = cluster.kubeconfig(tmp_path)
    text = kubeconfig.read_text()
    own_socket = [("grpc.use_local_subchannel_pool", 1)]
    with (
        serve(kubeconfig) as served,
        grpc.insecure_channel(f"127.0.0.1:{served.port}", own_socket) as one,
        grpc.insecure_channel(f"127.0.0.1:{served.port}", own_socket) as two,
    ):
        first, second = Engine(one), Engine(two)
        configured(first, kubeconfig=text.replace("token: t", "token: first"))
        for number in range(40):
            configured(second, kubeconfig=text.replace("token: t", f"token: t{number}"))
        assert len(opened) < 20
        assert len(closed) > 20
        before = len(opened)
        configured(second, kubeconfig=text.replace("token: t", "token: t39"))
        assert len(opened) == before, "the latest are used again"
        made = first.Create(provider_pb2.CreateRequest(properties=encode(a_config_map(a="1"))))
        assert made.id == "default/one", "a present session goes on"


def test_a_reconnecting_engine_keeps_its_settings(cluster: Apiserver, tmp_path: Path) -> None:
    with serve(cluster.kubeconfig(tmp_path)) as served:
        target = f"127.0.0.1:{served.port}"
        with grpc.insecure_channel(target, [("grpc.use_local_subchannel_pool", 1)]) as channel:
            configured(Engine(channel), namespace="team")
        with grpc.insecure_channel(target, [("grpc.use_local_subchannel_pool", 1)]) as channel:
            news = encode({"apiVersion": "v1", "kind": "ConfigMap"})
            inputs = decode(checked(Engine(channel), "kubernetes:core/v1:ConfigMap", news=news).inputs)
    assert inputs["metadata"]["namespace"] == "team"


def test_the_life_cycle_of_an_object(engine: Engine, cluster: Apiserver) -> None:
    made = engine.Create(provider_pb2.CreateRequest(properties=encode(a_config_map(a="1"))))
    assert made.id == "default/one"
    news = encode(a_config_map(a="1") | {"immutable": False})
    found = engine.Diff(provider_pb2.DiffRequest(id=made.id, olds=made.properties, news=news))
    assert found.changes == provider_pb2.DiffResponse.DIFF_SOME
    assert dict(found.detailedDiff)["immutable"].kind == provider_pb2.PropertyDiff.ADD
    assert not found.replaces
    updated = engine.Update(provider_pb2.UpdateRequest(id=made.id, olds=made.properties, news=news))
    read = engine.Read(provider_pb2.ReadRequest(id=made.id, properties=updated.properties, inputs=news))
    assert decode(read.inputs) == decode(news)
    engine.Delete(provider_pb2.DeleteRequest(id=made.id, properties=updated.properties))
    assert cluster.objects == {}


def test_a_created_object_that_is_not_ready_is_recorded(engine: Engine) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        engine.Create(provider_pb2.CreateRequest(properties=encode(a_pod()), timeout=0.05))
    details = dict(caught.value.trailing_metadata())["grpc-status-details-bin"]
    assert b"ErrorResourceInitFailed" in details
    assert b"default/pod" in details


def test_cancel_ends_a_waiting_create(engine: Engine, cluster: Apiserver) -> None:
    def cancel() -> None:
        assert cluster.watched.wait(10)
        engine.Cancel(empty_pb2.Empty())

    user = threading.Thread(target=cancel)
    user.start()
    with pytest.raises(grpc.RpcError, match="interrupted"):
        engine.Create(provider_pb2.CreateRequest(properties=encode(a_pod())))
    user.join()
    assert f"{PODS}/pod" in cluster.objects


def test_cancel_ends_every_waiting_create_at_once(cluster: Apiserver, tmp_path: Path) -> None:
    waiting = threading.Semaphore(0)

    def create(call: Call, inputs: Properties) -> State:
        waiting.release()
        call.interruption.sleep(20)
        raise PlimsollError("interrupted" if call.interruption.stopped else "ready")

    with (
        serve(cluster.kubeconfig(tmp_path), create=create) as served,
        grpc.insecure_channel(f"127.0.0.1:{served.port}") as channel,
    ):
        engine = Engine(channel)
        configured(engine)
        creates = [engine.Create.future(provider_pb2.CreateRequest()) for _ in range(80)]
        assert all(waiting.acquire(timeout=10) for _ in range(64))
        engine.Cancel(empty_pb2.Empty(), timeout=5)
        assert {create.details() for create in creates} == {"interrupted"}


def test_waiting_ends_when_the_engine_ends(engine: Engine, cluster: Apiserver, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = threading.Event()
    stop = Interruption.stop

    def noticed(interruption: Interruption) -> None:
        stop(interruption)
        stopped.set()

    monkeypatch.setattr(Interruption, "stop", noticed)
    waiting = engine.Create.future(provider_pb2.CreateRequest(properties=encode(a_pod())))
    assert cluster.watched.wait(10)
    waiting.cancel()
    assert stopped.wait(10)


def test_a_failure_is_logged_without_values(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*values: Any) -> None:
        raise ValueError(str(values))

    monkeypatch.setattr("plimsoll.provider.server.check", failing)
    with capture_logs() as logs, pytest.raises(grpc.RpcError, match="ValueError"):
        checked(engine, "kubernetes:core/v1:Secret", news=encode({"stringData": {"a": "hush"}}))
    (logged,) = logs
    assert (logged["method"], logged["error"]) == ("Check", "ValueError")
    assert "in failing" in logged["at"]
    assert "hush" not in str(logged)


def test_a_missing_kubeconfig_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PlimsollError, match="nowhere"):
        serve(tmp_path / "nowhere")


def test_as_a_process_it_says_so_in_one_line_writes_its_port_and_ends_on_request(
    cluster: Apiserver, tmp_path: Path
) -> None:
    kubeconfig, port_file = cluster.kubeconfig(tmp_path), tmp_path / "port"
    process = subprocess.Popen(
        [sys.executable, "-m", "plimsoll.provider", "--kubeconfig", str(kubeconfig), "--port-file", str(port_file)],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    assert "instead of the plugin" in line
    with grpc.insecure_channel(f"127.0.0.1:{json.loads(line)['port']}") as channel:
        grpc.channel_ready_future(channel).result(10)
    process.terminate()
    rest = process.stderr.read()
    assert process.wait(10) == 0
    assert "Traceback" not in rest


def test_importing_it_does_not_import_the_large_sdk() -> None:
    code = (
        "import json, sys, plimsoll.provider; print(json.dumps([m for m in sys.modules if 'pulumi_kubernetes' in m]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []

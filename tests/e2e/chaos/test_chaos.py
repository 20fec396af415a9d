"""Processes are killed and frozen, connections cut, disks filled and requests refused: nothing is created twice,
nothing is lost, and the state converges.

`make chaos` is the full size. The events are printed with the seed that repeats them.
"""

import math
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest
import yaml

from plimsoll.apply.state import OWNED_KINDS
from plimsoll.kube import Kind
from plimsoll.labels import SHARD
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.chaos.changes import API, NAMESPACE, POOL, Changes, claims_of, workspace
from tests.e2e.chaos.clock import Clock
from tests.e2e.chaos.disturbances import ALWAYS, DISTURBANCES, Stage, hold, schedule
from tests.e2e.chaos.judge import judge
from tests.e2e.chaos.loops import Loops
from tests.e2e.chaos.proxy import Proxy, kubeconfig_through, proxying
from tests.e2e.chaos.states import BucketStates, FolderStates, States, checkpoints
from tests.e2e.chaos.tenant import Tenant
from tests.e2e.chaos.witness import Witness
from tests.e2e.cluster.aws import KEYS, bucket_url, serving_bucket
from tests.e2e.cluster.conditions import condition, is_ready
from tests.e2e.cluster.kube import Kube
from tests.e2e.demand.environment import EIGHT_GPUS, add_pool, declare_demand

pytestmark = pytest.mark.e2e

NUMBER = int(os.environ.get("CHAOS_DISTURBANCES") or 15)
SEED = int(os.environ.get("CHAOS_SEED") or 1)
BUCKET = os.environ.get("CHAOS_BACKEND") == "s3"
"""Whether the states are in a bucket of moto's server; else they are in a folder."""
SETTLE_EVERY = 20
SETTLE_SECONDS = 240.0
FORGET_SECONDS = 180.0
"""The controller removes objects that others deleted from the states twice a minute."""
DISK_MIB = 160
TIMES = ["--lease-duration", "4", "--lease-renew-deadline", "3", "--lease-retry-period", "1", "--watch-silence", "10"]
DECLARED = {"unchanged": 3}


@pytest.fixture
def sandbox(audited_sandbox: Sandbox) -> Sandbox:
    return audited_sandbox


@pytest.fixture
def audited(sandbox: Sandbox) -> int:
    """Size of the audit log when the run began."""
    return sandbox.folder.audit_log.stat().st_size


@pytest.fixture
def cluster(sandbox: Sandbox) -> Iterator[Kube]:
    """An environment with a Workspace that is never changed, and a NodePool for pods that share GPUs."""
    with closing(Kube(sandbox.kubeconfig)) as cluster:
        declare_demand(cluster, "trigger-pod")
        add_pool(cluster, POOL, EIGHT_GPUS, tier=POOL)
        for name, replicas in DECLARED.items():
            cluster.apply(workspace(name, replicas))
        yield cluster


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path | None]:
    """A file system that fills up quickly, if one can be mounted."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=0700", "chaos", str(place)]
    mounted = os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    yield place if mounted else None
    if mounted:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def proxy(sandbox: Sandbox) -> Iterator[Proxy]:
    with proxying(sandbox) as proxy:
        yield proxy


@pytest.fixture
def pods() -> dict[str, str]:
    """UIDs of the controllers' pods, by the controller's name."""
    return {}


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path / "clock")


@pytest.fixture
def place(disk: Path | None, tmp_path: Path) -> Path:
    """The folder of the work folders, and of states that are in a folder."""
    place = disk or tmp_path / "states"
    (place / "state").mkdir(parents=True)
    return place


@pytest.fixture
def states(place: Path) -> Iterator[States]:
    if not BUCKET:
        yield FolderStates(place / "state")
        return
    with serving_bucket("chaos") as endpoint:
        yield BucketStates(bucket_url(endpoint, "chaos"), endpoint, "chaos")


@pytest.fixture
def tenant(sandbox: Sandbox, cluster: Kube, tmp_path: Path) -> Iterator[Tenant]:
    tenant = Tenant(cluster, sandbox.kubeconfig, tmp_path / "tenant")
    yield tenant
    tenant.leave()


def a_pod(name: str) -> dict[str, Any]:
    """A pod of the controller that nothing schedules: its process runs on this host."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"chaos-{name}", "namespace": "plimsoll-system"},
        "spec": {
            "serviceAccountName": "plimsoll",
            "schedulingGates": [{"name": "example.com/chaos"}],
            "containers": [{"name": "controller", "image": "registry.k8s.io/pause:3.10"}],
        },
    }


@pytest.fixture
def loops(
    sandbox: Sandbox,
    cluster: Kube,
    tenant: Tenant,  # before the first controller, which has what the tenant may have from the beginning
    proxy: Proxy,
    states: States,
    place: Path,
    tmp_path: Path,
    pods: dict[str, str],
    clock: Clock,
) -> Iterator[Loops]:
    """One controller at first. All of its requests go through the proxy."""
    content = kubeconfig_through(proxy, sandbox.controller_kubeconfig)

    def kubeconfig_of(name: str) -> Path:
        """With a token that is bound to a pod, as that of a controller in the cluster."""
        kubeconfig = tmp_path / f"kubeconfig-{name}"
        if not kubeconfig.exists():
            pod = cluster.apply(a_pod(name))
            pods[name] = pod["metadata"]["uid"]
            user = {"token": cluster.token("plimsoll-system", "plimsoll", pod)}
            kubeconfig.write_text(yaml.safe_dump(content | {"users": [content["users"][0] | {"user": user}]}))
        return kubeconfig

    environ = {**os.environ, **sandbox.environ("controller"), **KEYS, "PULUMI_BACKEND_URL": states.url}
    options = ["--shards", "2", *TIMES]
    loops = Loops(options, environ, tmp_path, place, kubeconfig_of, clock)
    yield loops
    loops.end()
    for name in pods:
        cluster.delete("v1", "Pod", f"chaos-{name}", "plimsoll-system")
    for name, log in loops.logs().items():
        print(f"--- {name}\n{log.read_text(errors='replace')[-6000:]}")  # noqa: T201 - pytest shows it where a test fails


@pytest.fixture
def witness(sandbox: Sandbox, cluster: Kube) -> Iterator[Witness]:
    witness = Witness(sandbox.kubeconfig)
    witness.start()
    yield witness
    witness.stop()


@pytest.mark.timeout(300 + 60 * NUMBER)
def test_nothing_is_created_twice_or_lost(
    audited: int,
    sandbox: Sandbox,
    cluster: Kube,
    loops: Loops,
    proxy: Proxy,
    disk: Path | None,
    states: States,
    tenant: Tenant,
    clock: Clock,
    witness: Witness,
    tmp_path: Path,
) -> None:
    random = Random(SEED)
    changes = Changes(cluster, SEED)
    stage = Stage(sandbox, loops, proxy, cluster, changes, witness, tenant, clock, states, disk, tmp_path, random)
    possible = [name for name in DISTURBANCES if disk is not None or name != "the disk is full"]
    scheduled = schedule(NUMBER, random, possible)
    if disk is None:
        say("not done, as no file system can be mounted here: the disk is full")
    await_condition(lambda: all(len(claims_of(cluster, name)) == DECLARED[name] for name in DECLARED), 120, "a loop")
    began = time.monotonic()
    with changing(changes):
        for count, name in enumerate(scheduled, 1):
            stage.note_states()
            say(f"{time.monotonic() - began:6.1f} s  {count:3}  {name}")
            with DISTURBANCES[name](stage):
                hold(random)
            time.sleep(random.uniform(0.5, 4.0))
            if count % SETTLE_EVERY == 0:
                with changes.paused:
                    at_rest(cluster, changes)
                say(f"{time.monotonic() - began:6.1f} s       as declared")
    say(f"{time.monotonic() - began:6.1f} s  {len(changes.made)} changes; to rest:")
    at_rest(cluster, changes)
    say(f"{time.monotonic() - began:6.1f} s  as declared")
    assert drift(sandbox, states) == [], "declared, states and cluster are the same"
    assert loops.stop() == 0

    await_condition(lambda: not loops.processes(), 120, "no process is left")
    assert states.names("locks") == [], "no lock is left"
    known: set[tuple[str, ...]] = set()
    for name in checkpoints(states):
        deployment = orjson.loads(states.read(name))["checkpoint"]["latest"] or {}
        assert not deployment.get("pending_operations"), f"{name} has no pending operation"
        known |= {identity(each["outputs"]) for each in deployment.get("resources") or () if is_object(each)}
    there, going = owned(cluster)
    assert there <= known <= there | going, "the states have what the cluster has, perhaps those that others deleted"

    say(f"nothing to disturb: {stage.missed}")
    assert len(stage.missed) <= math.ceil(NUMBER / 4)
    done = Counter(scheduled) - Counter(stage.missed)
    assert done.keys() >= set(ALWAYS[:NUMBER]), "what is always drawn has disturbed something"
    assert witness.blind == []
    assert witness.events > 0
    for uid, most in witness.most_claims.items():
        assert most <= changes.most_replicas.get(uid, max(DECLARED.values())), f"NodeClaims of {uid} were doubled"
    assert witness.most_triggers <= 1, "a node was requested twice"
    assert loops.ended == [], "no controller ends by itself"
    for name, log in loops.logs().items():
        assert "Traceback" not in log.read_text(), f"{name} met an error that it does not know"
    assert tenant.faults == []
    changes.remove_all()
    last = loops.beside()
    await_condition(lambda: not owned(cluster)[0] and not workspaces(cluster), 300, "nothing is left")
    assert last.stop() == 0
    found = judge(sandbox.folder.audit_log, loops.logs().values(), stage.epochs, audited)
    say(f"{NUMBER} disturbances, seed {SEED}, states in {'a bucket' if BUCKET else 'a folder'}: {found}")
    say(f"silent watches were told after {max(stage.told, default=0):.1f} s at most: {stage.told}")
    say(f"{witness.events} events seen, {proxy.refused} requests refused by the proxy, restored: {stage.epochs}")
    assert found.created and found.deleted, "the audit log has what was done"
    assert found.wrongful == []


@contextmanager
def changing(changes: Changes) -> Iterator[None]:
    changes.start()
    try:
        yield
    finally:
        changes.stop()
        for each in changes.made:
            say(f"    {each}")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - pytest shows it where a test fails


def workspaces(cluster: Kube) -> set[str]:
    return {each["metadata"]["name"] for each in cluster.list(API, "Workspace", NAMESPACE)}


def at_rest(cluster: Kube, changes: Changes) -> None:
    """Waits until the cluster has exactly the declared objects, all of them ready."""
    changes.uncordon()
    wanted = DECLARED | changes.replicas

    def amiss() -> str:
        for name, replicas in wanted.items():
            claims = claims_of(cluster, name)
            if len(claims) != replicas:
                return f"{name}: {len(claims)} NodeClaims of {replicas}"
            if not all(map(is_ready, claims)):
                return f"{name}: NodeClaims that are not ready"
            deployment = cluster.get("apps/v1", "Deployment", name, NAMESPACE)
            if deployment is None or deployment["spec"]["replicas"] != replicas:
                return f"{name}: no Deployment with {replicas} replicas"
            found = condition(cluster.get(API, "Workspace", name, NAMESPACE), "ResourceReady")
            if found.get("status") != "True":
                return f"{name}: {found.get('reason')}: {found.get('message')}"
        others = workspaces(cluster) - wanted.keys()
        return f"still there: {others}" if others else ""

    deadline = time.monotonic() + SETTLE_SECONDS
    while output_text := amiss():
        assert time.monotonic() < deadline, f"not at rest after {SETTLE_SECONDS:g} s: {output_text}"
        time.sleep(0.5)


def drift(sandbox: Sandbox, states: States) -> list[dict[str, Any]]:
    """The differences that `plimsoll drift` reports; none once each state has dropped objects that others deleted."""
    options = ["--backend", states.url, "--output", "json"]
    command = [sys.executable, "-m", "plimsoll", "drift", *options]
    found: list[dict[str, Any]] = []

    def none() -> bool:
        done = subprocess.run(
            command, env={**os.environ, **sandbox.environ(), **KEYS}, capture_output=True, text=True, check=False
        )
        assert done.returncode in (0, 2), done.stderr
        found[:] = orjson.loads(done.stdout)
        return not found

    try:
        await_condition(none, FORGET_SECONDS)
    except AssertionError:
        return found
    return []


def identity(obj: dict[str, Any]) -> tuple[str, ...]:
    metadata = obj["metadata"]
    return obj["kind"], metadata.get("namespace") or "", metadata["name"], metadata["uid"]


def is_object(resource: dict[str, Any]) -> bool:
    return bool(resource.get("custom")) and not resource["type"].startswith("pulumi:")


def owned(cluster: Kube) -> tuple[set[tuple[str, ...]], set[tuple[str, ...]]]:
    """Objects with the label of a capacity stack: those that are not being deleted, and those that are."""
    found: tuple[set[tuple[str, ...]], set[tuple[str, ...]]] = (set(), set())
    for kind in OWNED_KINDS:
        for each in labelled(cluster, kind):
            found["deletionTimestamp" in each["metadata"]].add(identity({**each, "kind": kind.kind}))
    return found


def labelled(cluster: Kube, kind: Kind) -> list[dict[str, Any]]:
    try:
        return cluster.list(kind.api_version, kind.kind, selector=SHARD)
    except Exception as error:
        if getattr(error, "code", 0) == 404:  # such a kind is not defined here
            return []
        raise

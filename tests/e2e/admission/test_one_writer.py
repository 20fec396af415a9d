"""A former holder of the Lease continues after a pause and writes as if nothing had happened: the apiserver refuses."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import pytest

from plimsoll.apply import Lease, LeaseSettings
from plimsoll.components import NAMESPACE
from plimsoll.components.admission import one_writer_policies
from plimsoll.kube import Connection, RequestError
from plimsoll.labels import SHARD
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.admission.objects import declare_admission
from tests.e2e.cluster.kube import Kube, Manifest, acting_as

pytestmark = pytest.mark.e2e

SERVICE_ACCOUNT = "plimsoll"
CLAIM = ("karpenter.sh/v1", "NodeClaim")
LEASE = ("coordination.k8s.io/v1", "Lease", "plimsoll", NAMESPACE)


def declare_policies(cluster: Kube) -> None:
    for name, admission in one_writer_policies().items():
        declare_admission(cluster, name, admission)


def declare_account(cluster: Kube) -> None:
    """The controller's account, with every right."""
    named = {"name": SERVICE_ACCOUNT, "namespace": NAMESPACE}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named})
    cluster.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "one-writer"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", **named}],
        }
    )


def hold(cluster: Kube, name: str, uid: str) -> None:
    """The pod with this name and UID holds the Lease."""
    metadata = {"name": LEASE[2], "namespace": NAMESPACE}
    spec = {"holderIdentity": f"{name}_1_0a1b2c3d.{uid}"}
    cluster.apply({"apiVersion": LEASE[0], "kind": LEASE[1], "metadata": metadata, "spec": spec})


@pytest.fixture(scope="module")
def cluster(admission_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    """The policies, in effect, and the controller's account with every right."""
    with closing(Kube(admission_sandbox.kubeconfig)) as kube:
        declare_policies(kube)
        declare_account(kube)
        _await_in_effect(admission_sandbox, kube, tmp_path_factory.mktemp("account"))
        yield kube
        for name in one_writer_policies():
            kube.delete("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", name)
        kube.delete(*LEASE)


def _await_in_effect(sandbox: Sandbox, cluster: Kube, folder: Path) -> None:
    """Returns when the apiserver refuses the account, while a pod that does not exist holds the Lease."""
    hold(cluster, "gone", str(uuid.UUID(int=0)))
    with closing(acting_as(sandbox.kubeconfig, cluster.token(NAMESPACE, SERVICE_ACCOUNT), folder)) as account:
        for manifest in a_write_for_each():
            await_condition(partial(_refused, account, manifest), 120, "the policies are in effect")
    cluster.delete(*LEASE)


def a_write_for_each() -> tuple[Manifest, Manifest]:
    """One write for each of the two policies."""
    return a_claim("probe"), a_service("probe", **{SHARD: "capacity-prod-0"})


def _refused(account: Kube, manifest: Manifest) -> bool:
    try:
        account.apply(manifest, dry_run=True)
    except RequestError as error:
        return error.code == 403
    return False


class Writer:
    """A writer in a pod of its own, or outside of the cluster."""

    def __init__(self, sandbox: Sandbox, cluster: Kube, folder: Path, name: str, *, in_pod: bool = True) -> None:
        pod = cluster.create(a_pod(name)) if in_pod else None
        self.kube = acting_as(sandbox.kubeconfig, cluster.token(NAMESPACE, SERVICE_ACCOUNT, pod), folder / name)
        self._connection = Connection.open(folder / name / "kubeconfig")
        settings = LeaseSettings(duration=60.0, renew_deadline=40.0, retry_period=10.0)
        self.lease = Lease(self._connection, settings, lambda _: None)
        self.lease.identify()

    def refusal(self, call: Callable[[Kube], object]) -> str:
        """Why its request is refused; empty if it is not."""
        try:
            call(self.kube)
        except RequestError as error:
            assert error.code == 403
            return error.message
        return ""

    def close(self) -> None:
        self.lease.release()
        self.kube.close()
        self._connection.close()


@pytest.fixture
def writer(admission_sandbox: Sandbox, cluster: Kube, tmp_path: Path) -> Iterator[Callable[..., Writer]]:
    """`writer("name")`, or `writer("name", in_pod=False)`."""
    with ExitStack() as stack:

        def make(name: str, **options: bool) -> Writer:
            made = Writer(admission_sandbox, cluster, tmp_path, name, **options)
            stack.callback(made.close)
            if options.get("in_pod", True):
                stack.callback(cluster.delete, "v1", "Pod", name, NAMESPACE)
            return made

        yield make


def a_pod(name: str) -> Manifest:
    container = {"name": "controller", "image": "registry.k8s.io/pause:3.10"}
    spec = {"serviceAccountName": SERVICE_ACCOUNT, "containers": [container], "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def a_claim(name: str) -> Manifest:
    reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    spec = {"nodeClassRef": reference, "requirements": [{"key": "kubernetes.io/os", "operator": "Exists"}]}
    return {"apiVersion": CLAIM[0], "kind": CLAIM[1], "metadata": {"name": name}, "spec": spec}


def a_service(name: str, **labels: str) -> Manifest:
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}]}}


def deletes(name: str) -> Callable[[Kube], object]:
    return lambda kube: kube.delete(*CLAIM, name)


def applies(manifest: Manifest) -> Callable[[Kube], object]:
    return lambda kube: kube.apply(manifest)


def test_a_former_holder_deletes_nothing_of_its_successor(cluster: Kube, writer: Callable[..., Writer]) -> None:
    former, successor = writer("former"), writer("successor")
    former.lease.acquire()
    # The policy reads the Lease through a watch of the apiserver.
    await_condition(lambda: former.refusal(applies(a_claim("held"))) == "", 120, "the holder writes")
    former.lease.release()  # as after it has expired; the former holder does not know it
    successor.lease.acquire(10)
    await_condition(lambda: successor.refusal(applies(a_claim("held"))) == "", 120, "the successor writes")
    refusal = former.refusal(deletes("held"))
    assert "is held by" in refusal and "the pod former" in refusal and "only the holder may write" in refusal
    assert former.refusal(applies(a_claim("another")))
    assert former.refusal(lambda kube: kube.patch(*CLAIM, "held", {"metadata": {"labels": {"a": "b"}}}))
    assert cluster.get(*CLAIM, "held"), "it is still there"
    assert successor.refusal(deletes("held")) == ""


def test_a_writer_outside_deletes_nothing_while_a_pod_holds_the_lease(writer: Callable[..., Writer]) -> None:
    outside, inside = writer("outside", in_pod=False), writer("inside")
    outside.lease.acquire(10)
    await_condition(lambda: outside.refusal(applies(a_claim("ours"))) == "", 120, "the holder writes")
    assert "the pod inside" in inside.refusal(deletes("ours"))
    outside.lease.release()
    # Not a deletion: one that is admitted before the policy sees the release leaves nothing to be refused.
    await_condition(lambda: "nobody" in outside.refusal(applies(a_claim("ours"))), 120, "nobody may write")
    inside.lease.acquire(10)
    await_condition(lambda: inside.refusal(applies(a_claim("ours"))) == "", 120, "the pod writes")
    assert "from outside of a pod" in outside.refusal(deletes("ours"))
    inside.refusal(deletes("ours"))


def test_a_holder_of_an_older_release_writes_during_an_upgrade(cluster: Kube, writer: Callable[..., Writer]) -> None:
    """Its identity has the pod's name as hostname, and no UID."""
    old, new = writer("old"), writer("new")
    new.lease.acquire(10)
    cluster.patch(*LEASE[:3], {"spec": {"holderIdentity": "old_1_0a1b2c3d"}}, NAMESPACE)
    await_condition(lambda: old.refusal(applies(a_claim("upgraded"))) == "", 120, "the old one writes")
    assert new.refusal(deletes("upgraded"))
    cluster.delete(*CLAIM, "upgraded")
    cluster.patch(*LEASE[:3], {"spec": {"holderIdentity": ""}}, NAMESPACE)  # nobody waits until it has expired


def test_only_the_controllers_objects_are_fenced_and_only_from_its_account(
    cluster: Kube, writer: Callable[..., Writer]
) -> None:
    holder, other = writer("holder"), writer("other")
    holder.lease.acquire(10)
    await_condition(
        lambda: other.refusal(applies(a_service("ours", **{SHARD: "capacity-prod-0"}))), 120, "it is fenced"
    )
    assert other.refusal(applies(a_service("foreign"))) == ""
    cluster.apply(a_claim("by-an-administrator"))
    cluster.delete(*CLAIM, "by-an-administrator")
    cluster.delete("v1", "Service", "foreign")


def test_without_a_lease_nothing_is_fenced(cluster: Kube, writer: Callable[..., Writer]) -> None:
    first = writer("first")
    cluster.delete(*LEASE)
    await_condition(partial(_admitted, first), 120, "there is no holder to wait for")
    first.refusal(deletes("early"))


def _admitted(writer: Writer) -> bool:
    return writer.refusal(applies(a_claim("early"))) == ""

"""The policies of one writer are deleted and created again: the apiserver's watch of Leases does not start again, so it
judges by the Lease as it was. Only the former holder is admitted, and what the other is told names the remedy."""

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
import yaml

from plimsoll.components import NAMESPACE
from plimsoll.components.admission import one_writer_policies
from plimsoll.kube import RequestError
from plimsoll.labels import SHARD
from plimsoll.sandbox import Sandbox
from plimsoll.sandbox.parts import part
from tests.awaiting import await_condition
from tests.e2e.admission.objects import ADMISSION, declare_admission
from tests.e2e.admission.test_one_writer import CLAIM, LEASE, SERVICE_ACCOUNT, a_claim, a_pod, a_service
from tests.e2e.cluster.kinds import await_served
from tests.e2e.cluster.kube import Kube, Manifest, acting_as
from tests.e2e.cluster.restoring import start_again, stop_control_plane
from tests.e2e.cluster.sandboxes import up_sandbox

pytestmark = pytest.mark.e2e

WRITES = (a_claim("probe"), a_service("probe", **{SHARD: "capacity-prod-0"}))
"""One write for each of the two policies."""


@pytest.fixture
def sandbox(sandbox_home: Path) -> Iterator[Sandbox]:
    """A cluster of its own: every policy of it whose parameter is a Lease would judge by an old one afterwards."""
    yield from up_sandbox("recreated", karpenter=False)


@pytest.fixture
def cluster(sandbox: Sandbox) -> Iterator[Kube]:
    """The controller's account has every right."""
    named = {"name": SERVICE_ACCOUNT, "namespace": NAMESPACE}
    with closing(Kube(sandbox.kubeconfig)) as kube:
        for path in sorted((part("karpenter").cached / "crds/karpenter").glob("*.yaml")):
            kube.apply(yaml.safe_load(path.read_text()))
        await_served(kube, [CLAIM])
        kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        kube.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named})
        kube.apply(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "one-writer"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
                "subjects": [{"kind": "ServiceAccount", **named}],
            }
        )
        yield kube


def refusals(sandbox: Sandbox, cluster: Kube, pod: Manifest, folder: Path) -> list[str]:
    """Why the writes from a pod are refused; empty for one that is not."""
    token = cluster.token(NAMESPACE, SERVICE_ACCOUNT, pod)
    with closing(acting_as(sandbox.kubeconfig, token, folder / pod["metadata"]["name"])) as account:
        return [_refusal(account, manifest) for manifest in WRITES]


def _refusal(account: Kube, manifest: Manifest) -> str:
    try:
        account.apply(manifest, dry_run=True)
    except RequestError as error:
        return error.message
    return ""


def hold(cluster: Kube, pod: Manifest) -> None:
    """The pod holds the Lease."""
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    metadata = {"name": LEASE[2], "namespace": NAMESPACE}
    spec = {"holderIdentity": f"{name}_1_0a1b2c3d.{uid}"}
    cluster.apply({"apiVersion": LEASE[0], "kind": LEASE[1], "metadata": metadata, "spec": spec})


def declare(cluster: Kube) -> None:
    for name, admission in one_writer_policies().items():
        declare_admission(cluster, name, admission)


def test_the_former_holder_alone_is_admitted_until_the_apiserver_is_restarted(
    sandbox: Sandbox, cluster: Kube, tmp_path: Path
) -> None:
    former, successor = cluster.create(a_pod("former")), cluster.create(a_pod("successor"))
    told = partial(refusals, sandbox, cluster, folder=tmp_path)
    hold(cluster, former)
    declare(cluster)
    await_condition(lambda: all(told(successor)) and not any(told(former)), 120, "the policies are in effect")

    for name in one_writer_policies():
        cluster.delete(ADMISSION, "ValidatingAdmissionPolicyBinding", name)
        cluster.delete(ADMISSION, "ValidatingAdmissionPolicy", name)
    await_condition(lambda: not any(told(successor)), 120, "nothing is fenced")
    hold(cluster, successor)
    declare(cluster)
    await_condition(lambda: all(told(successor)), 120, "the policies are in effect again")
    for why in told(successor):
        assert "is held by former_1_" in why, "the Lease as it was"
        assert "restart the apiservers" in why
    assert told(former) == ["", ""], "one writer: the successor is refused"

    stop_control_plane(sandbox)
    start_again(sandbox, cluster, WRITES[0])
    await_condition(lambda: not any(told(successor)), 120, "the holder writes")
    assert all(told(former))

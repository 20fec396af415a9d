"""The policies of one writer are deleted and created again: the apiserver's watch of Leases does not start again, so it
judges by the Lease as it was. Only the former holder is admitted, and what the other is told names the remedy."""

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from plimsoll.components import NAMESPACE
from plimsoll.components.admission import one_writer_policies
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.admission.objects import ADMISSION
from tests.e2e.admission.test_one_writer import (
    CLAIM,
    SERVICE_ACCOUNT,
    a_pod,
    a_write_for_each,
    declare_account,
    declare_policies,
    hold,
)
from tests.e2e.cluster.kinds import await_served, define_karpenter_kinds
from tests.e2e.cluster.kube import Kube, Manifest, acting_as
from tests.e2e.cluster.restoring import start_again, stop_control_plane
from tests.e2e.cluster.sandboxes import up_sandbox

pytestmark = pytest.mark.e2e

WRITES = a_write_for_each()


@pytest.fixture
def sandbox(sandbox_home: Path) -> Iterator[Sandbox]:
    """A cluster of its own: every policy of it whose parameter is a Lease would judge by an old one afterwards."""
    yield from up_sandbox("recreated", karpenter=False)


@pytest.fixture
def cluster(sandbox: Sandbox) -> Iterator[Kube]:
    """The controller's account has every right."""
    with closing(Kube(sandbox.kubeconfig)) as kube:
        define_karpenter_kinds(kube)
        await_served(kube, [CLAIM])
        declare_account(kube)
        yield kube


def refusals(sandbox: Sandbox, cluster: Kube, pod: Manifest, folder: Path) -> list[str]:
    """Why the writes from a pod are refused; empty for one that is not."""
    token = cluster.token(NAMESPACE, SERVICE_ACCOUNT, pod)
    with closing(acting_as(sandbox.kubeconfig, token, folder / pod["metadata"]["name"])) as account:
        return [account.refusal(manifest) for manifest in WRITES]


def test_the_former_holder_alone_is_admitted_until_the_apiserver_is_restarted(
    sandbox: Sandbox, cluster: Kube, tmp_path: Path
) -> None:
    former, successor = cluster.create(a_pod("former")), cluster.create(a_pod("successor"))
    told = partial(refusals, sandbox, cluster, folder=tmp_path)
    hold(cluster, former["metadata"]["name"], former["metadata"]["uid"])
    declare_policies(cluster)
    await_condition(lambda: all(told(successor)) and not any(told(former)), 120, "the policies are in effect")

    for name in one_writer_policies():
        cluster.delete(ADMISSION, "ValidatingAdmissionPolicyBinding", name)
        cluster.delete(ADMISSION, "ValidatingAdmissionPolicy", name)
    await_condition(lambda: not any(told(successor)), 120, "nothing is fenced")
    hold(cluster, successor["metadata"]["name"], successor["metadata"]["uid"])
    declare_policies(cluster)
    await_condition(lambda: all(told(successor)), 120, "the policies are in effect again")
    for why in told(successor):
        assert "is held by former_1_" in why, "the Lease as it was"
        assert "restart the apiservers" in why
    assert told(former) == ["", ""], "one writer: the successor is refused"

    stop_control_plane(sandbox)
    start_again(sandbox, cluster, WRITES[0])
    await_condition(lambda: not any(told(successor)) and all(told(former)), 120, "the holder alone writes")

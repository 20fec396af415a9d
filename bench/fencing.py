"""What one writer costs the apiserver: a write of the controller's account, and a renewal of any Lease, with and
without the admission policies that have the Lease as their parameter.

    python -m bench.fencing [--writes 500] [--renewals 2000] [--output json]

One sandbox without the policies, then with them, then without again; both times without count together. A second time
with them would measure nothing: an apiserver does not start its watch of Leases again. The figures are the CPU of the
apiserver, which a busy machine changes little: `write` for a dry run of server-side apply of a NodeClaim, `renewal` for
a change of a Lease, of which it watches all while a policy has one as its parameter. Kubelets renew theirs every 10 s.
"""

import os
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from typing import Annotated, Any

import psutil
import typer
from rich.console import Console
from rich.table import Table

from bench.cluster import NODE_CLAIMS, apply, define_karpenter
from bench.command import run_benchmark
from plimsoll.cli.shared import Format, Output, print_json
from plimsoll.components import NAMESPACE
from plimsoll.components.admission import one_writer_policies
from plimsoll.errors import PlimsollError
from plimsoll.kube import APPLY_PATCH, MERGE_PATCH, Connection, RequestError
from plimsoll.sandbox import IDENTITIES, Sandbox

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
KINDS = {
    "ValidatingAdmissionPolicy": f"{ADMISSION}/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": f"{ADMISSION}/validatingadmissionpolicybindings",
}
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
OUTSIDE, POD = "bench_1_0a1b2c3d", "bench_1_0a1b2c3d.00000000-0000-0000-0000-000000000000"
"""Holders: a process outside of the cluster, as that of the benchmark, and a pod."""
WAIT_SECONDS = 60.0
err = Console(stderr=True)
RBAC = "rbac.authorization.k8s.io"


def main(
    writes: Annotated[int, typer.Option(min=1, help="writes of a NodeClaim, each turn")] = 500,
    renewals: Annotated[int, typer.Option(min=1, help="renewals of a Lease, each turn")] = 2_000,
    output: Output = Format.TEXT,
) -> None:
    """The cost of the policies of one writer."""
    found: dict[bool, dict[str, list[float]]] = {fenced: {"write": [], "renewal": []} for fenced in (False, True)}
    sandbox = Sandbox.named(f"fencing-{os.getpid()}")
    sandbox.up(karpenter=False, lws=False, stop_with_caller=True)
    try:
        with (
            closing(Connection.open(sandbox.kubeconfig)) as admin,
            closing(Connection.open(sandbox.controller_kubeconfig)) as account,
        ):
            _prepare(admin)
            for fenced in (False, True, False):
                err.print("with the policies" if fenced else "without", style="dim")
                _fence(admin, account, fenced)
                found[fenced]["write"].append(_cpu(sandbox, lambda: _write(account), writes))
                found[fenced]["renewal"].append(_cpu(sandbox, lambda: _renew(admin), renewals))
    finally:
        sandbox.down()
    row: dict[str, Any] = {}
    for name in ("write", "renewal"):
        without, policed = (1000 * statistics.mean(found[each][name]) for each in (False, True))
        row[name] = {"without": round(without, 3), "fenced": round(policed, 3), "ratio": round(policed / without, 2)}
    if output is Format.JSON:
        print_json(row)
        return
    table = Table("ms of CPU", "without", "fenced", "ratio", box=None)
    for name, figures in row.items():
        table.add_row(name, *(f"{value:g}" for value in figures.values()))
    Console().print(table)


def _prepare(admin: Connection) -> None:
    """The kinds, the controller's account with every right, and its Lease."""
    define_karpenter(admin)
    apply(admin, "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"apiGroup": RBAC, "kind": "User", "name": IDENTITIES["controller"].user}
    binding = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "bench"}}
    path = f"/apis/{RBAC}/v1/clusterrolebindings"
    apply(admin, path, binding | {"roleRef": role, "subjects": [subject]})
    for name, namespace in (("plimsoll", NAMESPACE), ("bench", "default")):
        metadata = {"name": name, "namespace": namespace}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
        apply(admin, LEASES.format(namespace), lease | {"spec": {"holderIdentity": OUTSIDE}})


def _fence(admin: Connection, account: Connection, fenced: bool) -> None:
    """Makes or removes the policies, and returns when that is in force: a pod's Lease refuses the account, or not."""
    for name, admission in one_writer_policies().items():
        specs = (admission["policy"], {"policyName": name, **admission["binding"]})
        for (kind, path), spec in zip(KINDS.items(), specs, strict=True):
            if fenced:
                version = ADMISSION.removeprefix("/apis/")
                apply(admin, path, {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})
            else:
                _delete(admin, f"{path}/{name}")
    for holder, refused in ((POD, fenced), (OUTSIDE, False)):
        patch = {"spec": {"holderIdentity": holder}}
        admin.request("PATCH", f"{LEASES.format(NAMESPACE)}/plimsoll", patch, content_type=MERGE_PATCH)
        deadline = time.monotonic() + WAIT_SECONDS
        while _refused(account) is not refused:
            if time.monotonic() > deadline:
                raise PlimsollError(f"The policies are not in force, or still are, after {WAIT_SECONDS:g} s.")
            time.sleep(0.1)


def _delete(admin: Connection, path: str) -> None:
    try:
        admin.request("DELETE", path)
    except RequestError as error:
        if error.code != 404:
            raise


def _refused(account: Connection) -> bool:
    try:
        _write(account)
    except RequestError as error:
        if error.code != 403:
            raise
        return True
    return False


def _write(account: Connection) -> None:
    reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    spec = {"nodeClassRef": reference, "requirements": [{"key": "kubernetes.io/os", "operator": "Exists"}]}
    claim = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "bench"}, "spec": spec}
    query = {"fieldManager": "bench", "force": "true", "dryRun": "All"}
    account.request("PATCH", f"{NODE_CLAIMS}/bench", claim, query=query, content_type=APPLY_PATCH)


def _renew(admin: Connection) -> None:
    patch = {"metadata": {"annotations": {"bench": str(time.monotonic())}}}
    admin.request("PATCH", f"{LEASES.format('default')}/bench", patch, content_type=MERGE_PATCH)


def _cpu(sandbox: Sandbox, request: Callable[[], None], times: int) -> float:
    """Seconds of CPU of the apiserver for each request."""
    state = sandbox.state()
    assert state is not None
    apiserver = psutil.Process(next(each.pid for each in state.processes if each.name == "kube-apiserver"))
    before = sum(apiserver.cpu_times()[:2])
    for _ in range(times):
        request()
    return (sum(apiserver.cpu_times()[:2]) - before) / times


if __name__ == "__main__":
    run_benchmark(main)

"""CRDs of Plimsoll, without the foundation's other objects, and of Karpenter, without Karpenter."""

from collections.abc import Iterable
from functools import partial

import yaml

from plimsoll.components.specs import definitions
from plimsoll.kube import RequestError
from plimsoll.sandbox.parts import part
from tests.awaiting import await_condition
from tests.e2e.cluster.kube import Kube

_API = "plimsoll.dev/v1alpha1"


def define_kinds(cluster: Kube) -> None:
    """Creates the CRDs, and returns when they are served."""
    for definition in definitions():
        cluster.apply(definition)
    await_served(cluster, ((_API, "Workspace"), (_API, "Environment")))


def define_karpenter_kinds(cluster: Kube) -> None:
    """Creates the CRDs of Karpenter; they may not be served yet."""
    for path in sorted((part("karpenter").cached / "crds/karpenter").glob("*.yaml")):
        cluster.apply(yaml.safe_load(path.read_text()))


def await_served(cluster: Kube, kinds: Iterable[tuple[str, str]]) -> None:
    """Kinds that were just defined, each with its API version, have no objects yet."""
    for version, kind in kinds:
        await_condition(partial(_empty, cluster, version, kind), message=f"{version} {kind} is served")


def _empty(cluster: Kube, version: str, kind: str) -> bool:
    try:
        return cluster.list(version, kind) == []
    except RequestError:
        return False

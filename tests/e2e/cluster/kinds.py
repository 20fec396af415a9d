"""Plimsoll's CRDs in a cluster, without the foundation's other objects."""

from plimsoll.components.specs import definitions
from plimsoll.kube import RequestError
from tests.awaiting import await_condition
from tests.e2e.cluster.kube import Kube

_API = "plimsoll.dev/v1alpha1"


def define_kinds(cluster: Kube) -> None:
    """Creates the CRDs, and returns when they are served."""
    for definition in definitions():
        cluster.apply(definition)
    await_condition(lambda: _served(cluster), message="the kinds are served")


def _served(cluster: Kube) -> bool:
    try:
        return cluster.list(_API, "Workspace") == cluster.list(_API, "Environment") == []
    except RequestError:
        return False

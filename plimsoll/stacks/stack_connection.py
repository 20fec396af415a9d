"""The cluster of a stack: that of its provider settings, whatever the shell's kubeconfig is."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pulumi

if TYPE_CHECKING:
    from plimsoll.kube import Connection


def stack_cluster() -> "Callable[[], Connection]":
    """A function that opens connections to the stack's cluster, from any thread, by `kubernetes:kubeconfig` and
    `kubernetes:context` of the stack. Raises SettingsError and ConnectionFailedError if these are invalid."""
    from plimsoll.kube import Connection, Kubeconfig  # most programs make no requests

    config = pulumi.Config("kubernetes")
    kubeconfig, context = config.get("kubeconfig"), config.get("context")
    if kubeconfig:
        return lambda: Kubeconfig.read(kubeconfig, context).connect()
    return lambda: Connection.open(context=context)

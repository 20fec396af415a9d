"""The cluster of a stack: the one of its provider, whatever the shell has."""

from collections.abc import Callable

import pulumi

from plimsoll.kube import Connection, Kubeconfig


def stack_cluster() -> Callable[[], Connection]:
    """Opens connections to it, on any thread: by `kubernetes:kubeconfig` and `kubernetes:context` of the stack.

    Raises SettingsError and ConnectionFailedError where these are none.
    """
    config = pulumi.Config("kubernetes")
    kubeconfig, context = config.get("kubeconfig"), config.get("context")
    if kubeconfig:
        return lambda: Kubeconfig.read(kubeconfig, context).connect()
    return lambda: Connection.open(context=context)

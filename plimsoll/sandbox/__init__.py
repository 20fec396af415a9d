"""A real Kubernetes control plane on this machine: etcd, kube-apiserver, Karpenter and KWOK nodes, all on the loopback
interface."""

from plimsoll.sandbox.certificates import AUTHORITY, CERTIFICATE, KEY, write_certificates
from plimsoll.sandbox.folder import Folder
from plimsoll.sandbox.identities import IDENTITIES
from plimsoll.sandbox.sandbox import DEFAULT_NAME, Sandbox
from plimsoll.sandbox.screen import making_nodes, show_build, showing_build, showing_startup
from plimsoll.sandbox.shell import path
from plimsoll.sandbox.state import ProcessState, Settings, State
from plimsoll.sandbox.trial import try_start

__all__ = [
    "AUTHORITY",
    "CERTIFICATE",
    "DEFAULT_NAME",
    "IDENTITIES",
    "KEY",
    "Folder",
    "ProcessState",
    "Sandbox",
    "Settings",
    "State",
    "making_nodes",
    "path",
    "show_build",
    "showing_build",
    "showing_startup",
    "try_start",
    "write_certificates",
]

"""A real Kubernetes control plane on this machine: etcd, kube-apiserver, Karpenter and KWOK nodes, all on loopback."""

from plimsoll import home as home
from plimsoll.sandbox.sandbox import Sandbox

__all__ = ["Sandbox"]

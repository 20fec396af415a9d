"""A real Kubernetes control plane on this machine: etcd, kube-apiserver, Karpenter and KWOK nodes, all on loopback."""

from plimsoll import home
from plimsoll.sandbox.folder import Folder
from plimsoll.sandbox.go_commands import GoCommands, Stopped, log_of
from plimsoll.sandbox.gpu_models import gpu_models
from plimsoll.sandbox.identities import IDENTITIES
from plimsoll.sandbox.installing import Installation
from plimsoll.sandbox.instance_types import catalogue
from plimsoll.sandbox.language_host import with_program
from plimsoll.sandbox.nodes import make
from plimsoll.sandbox.parts import PARTS, Part, Program, names, part
from plimsoll.sandbox.sandbox import DEFAULT_NAME, Sandbox
from plimsoll.sandbox.shell import path
from plimsoll.sandbox.state import ProcessState, Settings, State
from plimsoll.sandbox.toolchain import available_memory

__all__ = [
    "DEFAULT_NAME",
    "IDENTITIES",
    "PARTS",
    "Folder",
    "GoCommands",
    "Installation",
    "Part",
    "ProcessState",
    "Program",
    "Sandbox",
    "Settings",
    "State",
    "Stopped",
    "available_memory",
    "catalogue",
    "gpu_models",
    "home",
    "log_of",
    "make",
    "names",
    "part",
    "path",
    "with_program",
]

"""What runs in a reservation: finds the one GPU that its pod was given, and writes the UUID on the pod.

Imports little, so that it starts at once on any node: no Kubernetes client, no models.
"""

from plimsoll.probe.errors import NoGPUError, PartitionedGPUError, ProbeError, SeveralGPUsError
from plimsoll.probe.finding import find_gpu, sources
from plimsoll.probe.pod import ACCOUNT, OwnPod
from plimsoll.probe.running import run

__all__ = [
    "ACCOUNT",
    "NoGPUError",
    "OwnPod",
    "PartitionedGPUError",
    "ProbeError",
    "SeveralGPUsError",
    "find_gpu",
    "run",
    "sources",
]

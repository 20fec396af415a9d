"""The program in a reservation pod: it finds the one GPU of its pod, and writes the UUID to the pod.

It imports little, so that it starts quickly on any node: no Kubernetes client, no models.
"""

from plimsoll.probe.errors import NoGPUError, PartitionedGPUError, ProbeError, SeveralGPUsError
from plimsoll.probe.finding import find_gpu, sources
from plimsoll.probe.pod import OwnPod
from plimsoll.probe.running import run

__all__ = [
    "NoGPUError",
    "OwnPod",
    "PartitionedGPUError",
    "ProbeError",
    "SeveralGPUsError",
    "find_gpu",
    "run",
    "sources",
]

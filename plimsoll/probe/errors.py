"""Why a probe ends: each with an exit code of its own, which the pod's status shows."""

from typing import Final

from plimsoll.errors import PlimsollError

FAILED: Final = 1
NO_GPU: Final = 3
SEVERAL_GPUS: Final = 4
PARTITIONED_GPU: Final = 5


class ProbeError(PlimsollError):
    """The pod or the cluster is not as it has to be."""

    exit_code = FAILED


class NoGPUError(ProbeError):
    """No GPU is seen, or none whose UUID can be read."""

    exit_code = NO_GPU


class SeveralGPUsError(ProbeError):
    """More than one GPU is visible, so it is not known which one was reserved."""

    exit_code = SEVERAL_GPUS


class PartitionedGPUError(ProbeError):
    """The GPU is cut by MIG: its UUID would give the whole of it to shares of one slice."""

    exit_code = PARTITIONED_GPU

"""Errors of the probe. Each has its own exit code, which the pod's status shows."""

from typing import Final

from plimsoll.errors import PlimsollError

FAILED: Final = 1
NO_GPU: Final = 3
SEVERAL_GPUS: Final = 4
PARTITIONED_GPU: Final = 5


class ProbeError(PlimsollError):
    """The environment in the pod, or the cluster, is not as required."""

    exit_code = FAILED


class NoGPUError(ProbeError):
    """No GPU is visible, or none whose UUID can be read."""

    exit_code = NO_GPU


class SeveralGPUsError(ProbeError):
    """More than one GPU is visible, so it is not known which one was reserved."""

    exit_code = SEVERAL_GPUS


class PartitionedGPUError(ProbeError):
    """The GPU is partitioned by MIG. Shares of one slice would get the whole GPU by its UUID."""

    exit_code = PARTITIONED_GPU

"""Allocated and free parts of every GPU of every node."""

from plimsoll.cluster.ledger.account import DiscrepancyReason, GpuAccount, GpuGroup, PartDevices
from plimsoll.cluster.ledger.incremental import IncrementalLedger
from plimsoll.cluster.ledger.ledger import GpuLedger, empty_ledger, free_node, gpu_ledger

__all__ = [
    "DiscrepancyReason",
    "GpuAccount",
    "GpuGroup",
    "GpuLedger",
    "IncrementalLedger",
    "PartDevices",
    "empty_ledger",
    "free_node",
    "gpu_ledger",
]

"""Allocated and free parts of every GPU of every node."""

from plimsoll.cluster.ledger.account import GpuAccount, GpuGroup, PartDevices
from plimsoll.cluster.ledger.ledger import GpuLedger, free_node, gpu_ledger
from plimsoll.cluster.ledger.other_vendors import OtherAccelerators, other_accelerators
from plimsoll.cluster.ledger.snapshot_accounts import SnapshotAccounts

__all__ = [
    "GpuAccount",
    "GpuGroup",
    "GpuLedger",
    "OtherAccelerators",
    "PartDevices",
    "SnapshotAccounts",
    "free_node",
    "gpu_ledger",
    "other_accelerators",
]

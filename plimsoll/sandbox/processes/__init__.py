"""The processes of a sandbox: what runs, with which flags, in which order, and who keeps it running."""

from plimsoll.sandbox.processes.child import dies_with
from plimsoll.sandbox.processes.supervisor import LET_GO, Supervisor

__all__ = ["LET_GO", "Supervisor", "dies_with"]

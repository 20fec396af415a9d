"""The processes of a sandbox: their flags, the order of their start, and their supervisor."""

from plimsoll.sandbox.processes import kai
from plimsoll.sandbox.processes.controllers import JOB_SET, LEADER_WORKER_SET, TRAINER, Controller, wanted
from plimsoll.sandbox.processes.ports import LOOPBACK, hold_port, port_of
from plimsoll.sandbox.processes.supervisor import DETACH, Supervisor

__all__ = [
    "DETACH",
    "JOB_SET",
    "LEADER_WORKER_SET",
    "LOOPBACK",
    "TRAINER",
    "Controller",
    "Supervisor",
    "hold_port",
    "kai",
    "port_of",
    "wanted",
]

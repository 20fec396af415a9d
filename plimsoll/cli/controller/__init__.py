"""`plimsoll run`: the controller of a cluster, and its HTTP endpoints."""

from plimsoll.cli.controller.controller import Controller
from plimsoll.cli.controller.retries import retry_transient
from plimsoll.cli.controller.service import Service, serving
from plimsoll.cli.controller.status import ControllerState, ControllerStatus
from plimsoll.cli.controller.stopping import Stopping

__all__ = [
    "Controller",
    "ControllerState",
    "ControllerStatus",
    "Service",
    "Stopping",
    "retry_transient",
    "serving",
]

"""`plimsoll run`: the controller of a cluster, from one Environment to the next, and what it tells over HTTP."""

from plimsoll.cli.controller.controller import Controller
from plimsoll.cli.controller.patience import waited_out
from plimsoll.cli.controller.service import Service, serving
from plimsoll.cli.controller.standing import ControllerStatus, Standing
from plimsoll.cli.controller.stopping import Stopping

__all__ = [
    "Controller",
    "ControllerStatus",
    "Service",
    "Standing",
    "Stopping",
    "serving",
    "waited_out",
]

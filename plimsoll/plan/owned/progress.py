"""How far NodeClaims have progressed to nodes with allocatable GPUs, and the deadline of each step."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from plimsoll.cluster.nodes import gpu_devices
from plimsoll.cluster.pods import PodPlaces
from plimsoll.cluster.profiles import discovery_of
from plimsoll.model.api import EnvironmentSpec, PendingClaim
from plimsoll.model.cluster import VENDOR_RESOURCES, Node
from plimsoll.model.karpenter import NodeClaim
from plimsoll.model.meta import condition_text

PHASES: Final = ("Ready", "Initialized", "Registered", "Launched")
"""Karpenter's conditions of a NodeClaim, last step first."""
GPUS: Final = "GPUs"
"""The step after Karpenter's own: the node's devices are allocatable."""
UNREADY: Final = ("Initialized", "Ready")
"""Conditions that say why a registered node is not in service; the first with a message is shown."""


class Wait(NamedTuple):
    """The step that a NodeClaim waits for."""

    step: str
    since: datetime
    due: datetime
    """After this time the NodeClaim is late."""
    detail: str
    """Karpenter's message on the step; may be empty."""

    @property
    def allowed(self) -> timedelta:
        return self.due - self.since


class ClaimProgress:
    """Evaluates the NodeClaims of one snapshot."""

    def __init__(self, nodes: Iterable[Node], environment: EnvironmentSpec, places: PodPlaces) -> None:
        self._environment = environment
        self._places = places
        settings = environment.node_claims
        self._launch = timedelta(seconds=settings.launch_deadline_seconds)
        self._registration = timedelta(seconds=settings.registration_deadline_seconds)
        self._gpus = timedelta(seconds=settings.gpu_deadline_seconds)
        self._by_name: dict[str, Node] = {}
        self._by_provider_id: dict[str, Node] = {}
        for node in nodes:
            self._by_name[node.name] = node
            if node.provider_id:
                self._by_provider_id[node.provider_id] = node

    def node_of(self, claim: NodeClaim) -> Node | None:
        return self._by_name.get(claim.node_name) or self._by_provider_id.get(claim.provider_id)

    def ready(self, claim: NodeClaim) -> bool:
        """Whether the NodeClaim and its node are both Ready. The NodeClaim's condition stays True when the node fails
        later."""
        if not claim.ready:
            return False
        node = self.node_of(claim)
        return node is None or (node.ready is not False and not node.deleting)

    def shows_gpus(self, claim: NodeClaim) -> bool:
        """Whether its node has GPUs, which a device plugin announces or a driver publishes."""
        node = self.node_of(claim)
        if node is None:
            return False
        found = discovery_of(node)
        otherwise = found.gpus is None and (found.claimed or found.of_vendor) is not None
        return otherwise or bool(gpu_devices(node, self._environment.devices_on(node.labels)))

    def serves(self, claim: NodeClaim) -> bool:
        """Whether pods of the NodeClaim's Workspace are on its node. They stay when a device plugin fails."""
        node, owner = self.node_of(claim), claim.owner[:2]
        return node is not None and self._places.has_pod(node.name, owner)

    def wait(self, claim: NodeClaim, *, gpus_known: bool, recorded: PendingClaim | None, now: datetime) -> Wait | None:
        """The step that a NodeClaim waits for; None if its node is in service, or failed after it had been.

        `gpus_known`: the instance type has GPUs. `recorded` is the NodeClaim's entry in the Workspace's status, the
        only record of since when a node lacks its GPUs.
        """
        created = parse_time(claim.creation_timestamp)
        if created is None:
            return None
        if claim.ready or claim.initialized:
            return self._wait_for_gpus(claim, gpus_known, recorded, now)
        for step, allowed in (("Launched", self._launch), ("Registered", self._registration)):
            if not claim.passed(step):
                return Wait(step, created, created + allowed, _detail(claim, (step,)))
        registered = claim.condition("Registered")
        since = parse_time(registered.last_transition_time if registered else "") or created
        return Wait("Initialized", since, since + self._gpus, _detail(claim, UNREADY))

    def _wait_for_gpus(
        self, claim: NodeClaim, gpus_known: bool, recorded: PendingClaim | None, now: datetime
    ) -> Wait | None:
        node = self.node_of(claim)
        if not gpus_known or node is None or node.ready is not True or self.shows_gpus(claim) or self.serves(claim):
            return None
        since = parse_time(recorded.since) if recorded is not None and recorded.step == GPUS else None
        since = since or now
        return Wait(GPUS, since, since + self._gpus, self.lacks_gpus(claim, node))

    def lacks_gpus(self, claim: NodeClaim, node: Node) -> str:
        """That its node has none of the devices that it is for."""
        announced, own = self._environment.devices_on(node.labels), self._environment.gpu_resource
        asked = next((each for each in (own, *VENDOR_RESOURCES) if each in claim.requests), "GPUs")
        return f"node {node.name} has no allocatable {announced if asked == own else asked}"


def parse_time(text: str) -> datetime | None:
    """Parses an RFC 3339 time; None if the text is not a time, or has no time zone."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else None


def format_time(time: datetime) -> str:
    """RFC 3339, in UTC, whole seconds."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _detail(claim: NodeClaim, steps: Iterable[str]) -> str:
    return next((detail for step in steps if (detail := condition_text(claim.condition(step)))), "")


def phase_of(claim: NodeClaim) -> str:
    """`Deleting`, `Ready`, or Karpenter's last completed step; `Pending` before the first."""
    if claim.deleting:
        return "Deleting"
    return next((step for step in PHASES if claim.passed(step)), "Pending")

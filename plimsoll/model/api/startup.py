"""How long a replica took to start on a new node, as the status of its Workspace records it."""

from pydantic import Field
from pydantic.alias_generators import to_camel

from plimsoll.model.meta import Reported


class Startup(Reported):
    """The first replica on the newest created node: from the request of the node until it served."""

    node: str = ""
    """Name of the node; empty: nothing was measured yet."""
    instance_type: str = Field(default="", validation_alias="instanceType")
    measured: str = ""
    """When the replica became Ready, RFC 3339."""
    node_seconds: int = Field(default=0, validation_alias="nodeSeconds")
    """From the creation of the NodeClaim until it was Ready."""
    image_seconds: int = Field(default=0, validation_alias="imageSeconds")
    """From the placement of the pod until its containers ran: images, volumes, init containers."""
    server_seconds: int = Field(default=0, validation_alias="serverSeconds")
    """From then until the pod was Ready: weights that are fetched, and their load."""

    @property
    def seconds(self) -> int:
        """All of it."""
        return self.node_seconds + self.image_seconds + self.server_seconds

    def as_status(self) -> dict[str, str | int] | None:
        """As a status field; None where nothing was measured."""
        return {to_camel(name): value for name, value in self.model_dump().items()} if self.node else None

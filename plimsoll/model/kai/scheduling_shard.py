"""KAI's SchedulingShard (kai.scheduler/v1): a scheduler of its own for the nodes, queues and pods of a node pool."""

from pydantic import Field
from pydantic.aliases import AliasPath

from plimsoll.model.meta import ObservedObject


class SchedulingShard(ObservedObject):
    node_pool: str = Field(default="", validation_alias=AliasPath("spec", "partitionLabelValue"))
    """Value of the label of KAI's node pool; empty: of nodes, queues and pods without the label."""
    strategy: str = Field(default="", validation_alias=AliasPath("spec", "placementStrategy", "gpu"))
    """`spread`; else pods that share GPUs are packed."""

"""NodeClaims that an autoscaler made and whose nodes are not Ready yet."""

from collections import Counter

from plimsoll.labels import NODEPOOL, WORKSPACE
from plimsoll.model import Snapshot


def coming_claims(snapshot: Snapshot) -> Counter[str]:
    """How many there are, by NodePool."""
    claims = [each for each in snapshot.node_claims if WORKSPACE not in each.labels and not each.deleting]
    ready = {node.name for node in snapshot.nodes if node.ready} if claims else set()
    return Counter(claim.labels.get(NODEPOOL, "") for claim in claims if claim.node_name not in ready)

"""DemandClass: pods that the same GPUs could serve."""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from plimsoll.labels import GPU_PRODUCT
from plimsoll.model.dra import ClaimRequest
from plimsoll.model.meta import NodeRequirement, Placement

_LONGEST: Final = 63
"""Maximum length of a name, so that it is a valid label value."""
_DIGITS: Final = 10
"""Length of the hash in a name."""


@dataclass(frozen=True, slots=True)
class DemandClass:
    """What the pods of a class have in common."""

    placement: Placement
    queue: str = ""
    """KAI queue; empty: none."""
    scheduler: str = ""
    claims: tuple[ClaimRequest, ...] = ()
    """What the pods claim, where that has alternatives (`firstAvailable`): nodes are tried in the order of these."""
    _hash: int = field(init=False, repr=False, compare=False)
    """Cached, because it is used often."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.placement, self.queue, self.scheduler, self.claims)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def products(self) -> tuple[str, ...]:
        """GPU products that the pods require, sorted; empty if they require none, or only exclude some."""
        named = {value for key, value in self.placement.node_selector if key == GPU_PRODUCT}
        if named or not self.placement.affinity:
            return tuple(sorted(named))
        terms = [_products_of(term) for term in self.placement.affinity]
        return tuple(sorted({value for values in terms for value in values})) if all(terms) else ()

    @property
    def name(self) -> str:
        """Name of the GPUDemand: queue and product, and a hash of everything that distinguishes classes."""
        return _name(self)


def _products_of(term: Iterable[NodeRequirement]) -> set[str]:
    return {value for each in term if each.key == GPU_PRODUCT and each.operator == "In" for value in each.values}


@lru_cache(maxsize=4096)
def _name(of: DemandClass) -> str:
    placement = of.placement
    parts: list[object] = [
        placement.node_selector,
        [[(each.key, each.operator, each.values, each.field) for each in term] for term in placement.affinity],
        [(each.key, each.operator, each.value, each.effect) for each in placement.tolerations],
        of.queue,
        of.scheduler,
    ]
    if placement.preferred:
        parts.append([(weight, [str(each) for each in term]) for weight, term in placement.preferred])
    if of.claims:
        parts.append(repr(of.claims))
    digits = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGITS]
    words = [of.queue or of.scheduler, *(of.products if len(of.products) == 1 else ())]
    slug = re.sub(r"[^a-z0-9]+", "-", "-".join(words).casefold())[: _LONGEST - _DIGITS - 1].strip("-")
    return f"{slug}-{digits}" if slug else f"demand-{digits}"

"""A packing of a class of pods, as the status of its GPUDemand."""

import math
from collections import Counter
from collections.abc import Mapping

from plimsoll.model.gpu_demand import MAX_LISTED, DemandPattern, DemandPod, GPUDemandStatus
from plimsoll.model.share import GPUShare
from plimsoll.plan.packing import ANY, Item, Packing, size_on


def packed_demand(shares: Mapping[str, GPUShare], items: Mapping[str, Item], packing: Packing) -> GPUDemandStatus:
    """What a class of pods needs: `shares` by UID, and the `items` of the packing by name.

    Phase, objects and deadline are the provisioner's to fill in.
    """
    patterns = Counter(
        (tuple(sorted((_size(items[name], each.kinds[0]) for name in each.items), reverse=True)), _named(each.kinds))
        for each in packing.bins
        if each.gpu is None
    )
    return GPUDemandStatus(
        pod_count=len(shares),
        pods=tuple(DemandPod(uid=uid, share=str(share)) for uid, share in sorted(shares.items())[:MAX_LISTED]),
        gpus=packing.gpus,
        least_gpus=packing.least,
        lower_bound_milli=math.floor(packing.lower_bound * 1000 + 1e-6),
        patterns=tuple(
            DemandPattern(gpus=count, shares=sizes, kinds=kinds)
            for (sizes, kinds), count in sorted(patterns.items(), key=lambda each: (-each[1], each[0]))[:MAX_LISTED]
        ),
        reasons=tuple(sorted({why for _, why in packing.unplaced}))[:MAX_LISTED],
    )


def _size(item: Item, kind: str) -> int:
    return size_on(item.milli, kind)


def _named(kinds: tuple[str, ...]) -> tuple[str, ...]:
    return () if ANY in kinds else kinds

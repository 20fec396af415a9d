"""A demand's packing, as the status of its GPUDemand."""

import math
from collections import Counter

from plimsoll.model.api import MAX_LISTED, DemandPattern, DemandPod, GPUDemandStatus
from plimsoll.plan.demand import Demand, places


def figures(demand: Demand) -> GPUDemandStatus:
    """What a class of pods needs. Phase, objects, deadline and reasons are left to who asks for it."""
    packing = demand.packing
    patterns = Counter(
        (sizes, node.kind)
        for node in packing.new_nodes
        for held in node.gpus
        if held and (sizes := _sizes(demand, held)) is not None
    )
    pods = sorted({**demand.pods, **demand.spoken_for}.items())
    requests, held = places(demand)
    return GPUDemandStatus(
        pod_count=len(pods),
        pods=tuple(DemandPod(uid=uid, share=str(each.share)) for uid, each in pods[:MAX_LISTED]),
        gpus=packing.gpus,
        least_gpus=packing.least,
        lower_bound_milli=math.floor(packing.lower_bound * 1000 + 1e-6),
        patterns=tuple(
            DemandPattern(gpus=count, shares=sizes, kinds=(kind,) if kind else ())
            for (sizes, kind), count in sorted(patterns.items(), key=lambda each: (-each[1], each[0]))[:MAX_LISTED]
        ),
        requests=requests,
        places=held,
    )


def _sizes(demand: Demand, held: tuple[str, ...]) -> tuple[int, ...] | None:
    """Thousandths, the largest first; None where one is in MiB, which every kind of GPU counts differently."""
    sizes = [demand.pods[uid].share.milli if uid in demand.pods else None for uid in held]
    known = [size for size in sizes if size is not None]
    return tuple(sorted(known, reverse=True)) if len(known) == len(sizes) else None

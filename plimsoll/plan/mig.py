"""Profiles of NVIDIA's Multi-Instance GPU (MIG), such as `2g.24gb`: two compute slices with 24 GB."""

import re
from typing import Final

from plimsoll.plan.estimator import MIB_PER_GIB, InvalidFigureError, NodeGpus

# `+me` and `+gfx` add media engines or graphics, and say nothing of the memory.
_PROFILE: Final = re.compile(r"([1-7])g\.([1-9][0-9]{0,3})gb(?:[.+][a-z.]+)?")


def mig_slice(profile: str, product: str = "") -> NodeGpus:
    """One slice of that profile as what a replica has: it must fit it, as a model is not split over slices.

    The gigabytes of the name are taken as GiB. Raises InvalidFigureError on what is no profile.
    """
    match = _PROFILE.fullmatch(profile.strip().casefold())
    if match is None:
        raise InvalidFigureError(
            f"{profile!r} is no MIG profile", "write compute slices and memory, such as 1g.10gb or 3g.40gb"
        )
    return NodeGpus(count=1, memory_mib=int(match[2]) * MIB_PER_GIB, product=product, slices=True)

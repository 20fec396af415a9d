"""Memory that a GPU reports: slightly less than nominal, because the driver reserves some.

GPU Feature Discovery writes what the driver reports. This table is used until a live node of the type reports its
memory, so that a share in MiB is the same fraction of the GPU before and after the node exists. The figures are the
totals that NVIDIA's driver reports for these models (`nvidia-smi --query-gpu=name,memory.total`).
"""

from typing import Final

from plimsoll.model.cluster import product_words

_REPORTED: Final = {
    ("t4", 16384): 15360,
    ("a10", 24576): 23028,
    ("a10g", 24576): 23028,
    ("l4", 24576): 23034,
    ("l40s", 49152): 46068,
    ("h100", 81920): 81559,
    ("h100", 96256): 95830,
    ("h200", 144384): 143771,
}
"""MiB by model and nominal MiB; models that report all of it are left out."""


def reported_memory_mib(product: str, memory_mib: int) -> int:
    """MiB that one GPU will report; `memory_mib` itself if that is not the nominal memory of a known model."""
    models = ((word, memory_mib) for word in product_words(product))
    return next((_REPORTED[model] for model in models if model in _REPORTED), memory_mib)

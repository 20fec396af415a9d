"""Memory that a GPU reports: a little less than its nominal memory, as its driver keeps some for itself.

GPU Feature Discovery writes what the driver reports. Until a live node of a type has said it, the figures of the table
stand in, so that a share in MiB is the same part of the GPU before its node is there and after. They are the totals
that NVIDIA's driver states for these models (`nvidia-smi --query-gpu=name,memory.total`).
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
    """MiB of one GPU as it will report them; `memory_mib` itself where that is no nominal memory of a known model."""
    models = ((word, memory_mib) for word in product_words(product))
    return next((_REPORTED[model] for model in models if model in _REPORTED), memory_mib)

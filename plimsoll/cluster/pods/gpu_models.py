"""GPU models: TFLOPS by product, and the names that TensorFusion gives them.

The table is a data file (`gpu_models.csv`); each row names its source.
"""

import csv
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import resources
from types import MappingProxyType
from typing import Final, NamedTuple

_GIGABYTES: Final = re.compile(r"[0-9]{1,4}gb")
NO_OVERRIDES: Final[Mapping[str, float]] = MappingProxyType({})


class GpuModel(NamedTuple):
    words: frozenset[str]
    """Every product with these words is of this model."""
    model: str
    """TensorFusion's name."""
    tflops: float
    """In half precision (FP16), dense, with tensor cores."""
    source: str


@cache
def gpu_models() -> tuple[GpuModel, ...]:
    """The most specific first."""
    text = (resources.files(__package__) / "gpu_models.csv").read_text(encoding="utf-8")
    rows = [
        GpuModel(_words(row["product"]), row["model"], float(row["tflops"]), row["source"])
        for row in csv.DictReader(text.splitlines())
    ]
    return tuple(sorted(rows, key=lambda row: (-len(row.words), sorted(row.words))))


def tflops_milli(product: str, overrides: Mapping[str, float] = NO_OVERRIDES) -> int | None:
    """Thousandths of a TFLOPS of one GPU of a product; None if it is not known.

    `overrides` has TFLOPS by product, which may be written with more or fewer words: GPU Feature Discovery has
    `NVIDIA-A100-SXM4-40GB` where a catalog has `NVIDIA A100`.
    """
    if product in overrides:
        return round(overrides[product] * 1000)
    words = _words(product)
    if overrides and "mig" not in words:
        fewer = max(
            (each for each in overrides if _words(each) <= words), key=lambda each: len(_words(each)), default=""
        )
        same = {overrides[each] for each in overrides if each == fewer or (not fewer and words <= _words(each))}
        if len(same) == 1:
            return round(same.pop() * 1000)
    found = _model_of(product)
    return None if found is None else round(found.tflops * 1000)


def may_name(name: str, product: str) -> bool:
    """Whether a name that TFLOPS are given for can stand for the product, with more or fewer words."""
    given, words = _words(name), _words(product)
    written_otherwise = "mig" not in words and (given <= words or words <= given)
    return name == product or bool(given and words and written_otherwise)


def is_model(product: str, model: str, memory_mib: int | None = None) -> bool:
    """Whether a product is of the model, as TensorFusion writes it (`A100_SXM_80G`), or by the words of its name.

    A catalog's product may say less than the model (`NVIDIA A100`); then the memory of one GPU decides.
    """
    known = _model_of(product)
    if known is not None and known.model == model:
        return True
    wanted = next((each for each in gpu_models() if each.model == model), None)
    if known is not None and wanted is not None and known.words < wanted.words:
        stated = [int(word[:-2]) for word in wanted.words if _GIGABYTES.fullmatch(word)]
        return memory_mib is None or all(abs(each - memory_mib / 1024) <= 0.1 * each for each in stated)
    words = _words(product)
    return all(any(word.startswith(part) for word in words) for part in _words(model))


@lru_cache(maxsize=1024)
def _model_of(product: str) -> GpuModel | None:
    words = _words(product)
    return None if "mig" in words else next((each for each in gpu_models() if each.words <= words), None)


def _words(name: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", name.casefold()))

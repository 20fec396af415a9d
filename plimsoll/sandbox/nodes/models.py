"""The values that GPU Feature Discovery and NVIDIA's DRA driver write for each GPU model; the table is gpu_models.csv.

Names and MiB are those that NVIDIA's driver 5xx reports; GFD replaces spaces with dashes. The openb trace does
not name its models G1 to G3: their rows contain assumptions, which the column `note` states.
"""

import csv
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from plimsoll import labels


class GpuModel(NamedTuple):
    """One row; `memory_mib` is the memory of one GPU."""

    model: str
    name: str
    memory_mib: int
    family: str

    @property
    def product(self) -> str:
        """As the label has it."""
        return self.name.replace(" ", "-")


@cache
def gpu_models() -> dict[str, GpuModel]:
    """The table, by model."""
    with files("plimsoll.sandbox.nodes").joinpath("gpu_models.csv").open(encoding="utf-8") as rows:
        return {
            r["model"]: GpuModel(r["model"], r["name"], int(r["memory_mib"]), r["family"]) for r in csv.DictReader(rows)
        }


def discovery_labels(model: GpuModel, count: int) -> dict[str, str]:
    """The labels that GPU Feature Discovery puts on a node with `count` GPUs of that model."""
    return {
        labels.GPU_PRESENT: "true",
        labels.GPU_PRODUCT: model.product,
        labels.GPU_COUNT: str(count),
        labels.GPU_MEMORY: str(model.memory_mib),
        "nvidia.com/gpu.family": model.family,
    }


def device(model: GpuModel, number: int, uuid: str) -> dict[str, Any]:
    """A GPU of that model as NVIDIA's DRA driver publishes it."""
    attributes = {
        "type": "gpu",
        "productName": model.name,
        "architecture": model.family.replace("-", " ").title(),
        "uuid": uuid,
    }
    return {
        "name": f"gpu-{number}",
        "attributes": {name: {"string": value} for name, value in attributes.items()},
        "capacity": {"memory": {"value": f"{model.memory_mib}Mi"}},
    }

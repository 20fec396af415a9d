"""The instance types that Karpenter's KWOK provider offers in the sandbox; the table is instance_types.csv."""

import csv
from importlib.resources import files
from typing import Any, Final

from plimsoll import labels
from plimsoll.sandbox.nodes.models import discovery_labels, gpu_models

ZONES: Final = ("zone-a", "zone-b")


def instance_types() -> list[dict[str, Any]]:
    """The catalog in the format of the provider's INSTANCE_TYPES_FILE_PATH.

    An offering's requirements become labels of its nodes, as GPU Feature Discovery would write them. Types without GPUs
    require that the label does not exist; otherwise they would match any product.
    """
    with files("plimsoll.sandbox.nodes").joinpath("instance_types.csv").open(encoding="utf-8") as rows:
        return [_instance_type(row) for row in csv.DictReader(rows)]


def _instance_type(row: dict[str, str]) -> dict[str, Any]:
    gpus = int(row["gpus"])
    resources = {
        "cpu": row["cpu"],
        "memory": f"{row['memory_gib']}Gi",
        "ephemeral-storage": "1000Gi",
        "pods": "110",
    }
    if gpus:
        resources[labels.GPU_RESOURCE] = str(gpus)
        discovered = discovery_labels(gpu_models()[row["model"]], gpus)
        requirements = [_is(key, value) for key, value in discovered.items()]
    else:
        requirements = [{"key": key, "operator": "DoesNotExist"} for key in (labels.GPU_PRODUCT, labels.GPU_PRESENT)]
    return {
        "name": row["name"],
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": resources,
        "offerings": [
            {
                "Price": float(row["price_per_hour"]),
                "Available": True,
                "Requirements": [
                    _is("karpenter.sh/capacity-type", "on-demand"),
                    _is("topology.kubernetes.io/zone", zone),
                    *requirements,
                ],
            }
            for zone in ZONES
        ],
    }


def _is(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": [value]}

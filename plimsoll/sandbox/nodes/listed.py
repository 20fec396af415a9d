"""Reads a node list in CSV: one row per node with its GPUs, such as a trace of a production cluster."""

import csv
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from plimsoll import labels
from plimsoll.errors import PlimsollError
from plimsoll.sandbox.nodes.models import GpuModel, device, discovery_labels, gpu_models

COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
DRIVER: Final = "gpu.nvidia.com"
"""What the optional column `driver` may name."""
_MOST_DEVICES: Final = 128
"""Of a ResourceSlice."""
_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,61}[a-z0-9])?")
_LARGEST: Final = 10**9


class ListedNode(NamedTuple):
    """One row. `model` is None for a node without GPUs."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: GpuModel | None
    driver: str = ""
    """Whose ResourceSlices have the GPUs, which pods claim; empty: a device plugin announces them."""


def read_node_list(path: Path) -> list[ListedNode]:
    """The nodes in a CSV file with the columns sn, cpu_milli, memory_mib, gpu and model, and optionally driver.

    Raises PlimsollError, which names the line and the column of an error.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as rows:
            nodes = list(parse_node_list(rows, str(path)))
    except OSError as error:
        raise PlimsollError(f"Cannot read {path}: {error.strerror}.", "Set the path of a CSV file.") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise PlimsollError(f"{path} is not a CSV file in UTF-8: {error}.") from error
    if not nodes:
        raise PlimsollError(
            f"{path} lists no nodes.", f"Write one line for each node below the header {','.join(COLUMNS)}."
        )
    return nodes


def parse_node_list(rows: Iterable[str], source: str) -> Iterator[ListedNode]:
    """As `read_node_list`, from lines of text; `source` names them in errors."""
    reader = csv.DictReader(rows)
    lacking = [c for c in COLUMNS if c not in (reader.fieldnames or ())]
    if lacking:
        raise PlimsollError(
            f"{source}, line 1: no column {lacking[0]}.", f"The header must have {','.join(COLUMNS)}, in any order."
        )
    lines: dict[str, int] = {}
    for row in reader:
        where = f"{source}, line {reader.line_num}"
        node = _node(row, where)
        if node.name in lines:
            raise PlimsollError(f"{where}, column sn: {node.name} is already on line {lines[node.name]}.")
        lines[node.name] = reader.line_num
        yield node


def _node(row: dict[str, Any], where: str) -> ListedNode:
    if None in row or None in row.values():
        raise PlimsollError(f"{where}: the number of values differs from the number of columns in the header.")
    name = row["sn"].strip()
    if not _NAME.fullmatch(name):
        raise PlimsollError(
            f"{where}, column sn: {name!r} is not a valid node name.",
            "Use at most 63 lower-case letters, digits, dashes and dots.",
        )
    gpus = _number(row, "gpu", where, least=0)
    model = row["model"].strip()
    if gpus and model not in gpu_models():
        raise PlimsollError(
            f"{where}, column model: {model!r} is not a known GPU model.",
            f"The models are {', '.join(gpu_models())}; add others to plimsoll/sandbox/nodes/gpu_models.csv.",
        )
    driver = (row.get("driver") or "").strip()
    if driver not in ("", DRIVER):
        raise PlimsollError(
            f"{where}, column driver: {driver!r} is not {DRIVER}.",
            "Leave it empty for GPUs that a device plugin announces.",
        )
    if driver and gpus > _MOST_DEVICES:
        raise PlimsollError(f"{where}, column gpu: {gpus} is more than the {_MOST_DEVICES} devices of a ResourceSlice.")
    return ListedNode(
        name,
        _number(row, "cpu_milli", where, least=1),
        _number(row, "memory_mib", where, least=1),
        gpus,
        gpu_models()[model] if gpus else None,
        driver if gpus else "",
    )


def _number(row: dict[str, Any], column: str, where: str, least: int) -> int:
    text = row[column].strip()
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(_LARGEST))
    if not is_number or not least <= int(text) <= _LARGEST:
        raise PlimsollError(f"{where}, column {column}: {text!r} is not a whole number from {least} to {_LARGEST}.")
    return int(text)


def node_manifest(node: ListedNode) -> dict[str, Any]:
    """The Node object that KWOK simulates, with the labels of a kubelet and, unless pods claim its GPUs, of GPU Feature
    Discovery."""
    resources = {
        "cpu": f"{node.cpu_milli}m",
        "memory": f"{node.memory_mib}Mi",
        "ephemeral-storage": "1000Gi",
        "pods": "110",
    }
    announced = node.model if not node.driver else None
    if announced is not None:
        resources[labels.GPU_RESOURCE] = str(node.gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node.name,
            "labels": {
                "kubernetes.io/arch": "amd64",
                labels.HOSTNAME: node.name,
                "kubernetes.io/os": "linux",
                **(discovery_labels(announced, node.gpus) if announced is not None else {}),
            },
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "status": {"capacity": resources, "allocatable": resources, "phase": "Pending"},
    }


def slice_manifest(node: ListedNode, uid: str) -> dict[str, Any]:
    """The ResourceSlice with the GPUs of a node with a driver; `uid` is the node's."""
    numbers = range(node.gpus)
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {
            "name": f"{node.name}-{node.driver}",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": uid}],
        },
        "spec": {
            "driver": node.driver,
            "nodeName": node.name,
            "pool": {"name": node.name, "generation": 1, "resourceSliceCount": 1},
            "devices": [device(node.model, each, f"GPU-{node.name}-{each}") for each in numbers if node.model],
        },
    }

"""Pods and nodes of a trace of the openb family (Alibaba's GPU trace of 2023), from CSV."""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from plimsoll.errors import PlimsollError
from plimsoll.model.kai import MAX_DEVICES
from plimsoll.packing import GPU_MILLI

TRACES = Path(__file__).parents[2] / "shared" / "data" / "openb"
"""Default folder of traces, beside the checkout."""
DEFAULT_PODS = "openb_pod_list_default.csv"
DEFAULT_NODES = "openb_node_list_gpu_node.csv"
_SOURCE = "cluster-trace-gpu-v2023/csv of https://github.com/alibaba/clusterdata"
_PODS = ("name", "num_gpu", "gpu_milli")
_NODES = ("model", "gpu", "cpu_milli", "memory_mib")


@dataclass(frozen=True, slots=True)
class TracePod:
    key: str
    """The name; if it occurs repeatedly in the file, with the number of occurrences before."""
    name: str
    gpus: int
    """Requested GPUs; 0 for a pod without GPUs."""
    gpu_milli: int
    """Thousandths of each requested GPU."""
    models: tuple[str, ...]
    """Allowed models, sorted; empty if all are allowed."""
    cpu_milli: int
    memory_mib: int

    @property
    def asks_gpus(self) -> bool:
        return self.gpus > 0 and self.gpu_milli > 0

    @property
    def shares(self) -> bool:
        """Whether it requests a part of one GPU."""
        return self.gpus == 1 and 0 < self.gpu_milli < GPU_MILLI

    @property
    def whole_gpus(self) -> int:
        return self.gpus if self.asks_gpus and not self.shares else 0


@dataclass(frozen=True, slots=True)
class TraceNode:
    model: str
    gpus: int
    cpu_milli: int
    memory_mib: int


def default_pods() -> Path:
    """The default trace of openb. Raises PlimsollError, with its source, if it is missing."""
    path = TRACES / DEFAULT_PODS
    if not path.is_file():
        raise PlimsollError(
            f"No trace is given, and {path} is not there.",
            f"Give the path of a CSV file of pods, such as {DEFAULT_PODS} from {_SOURCE}.",
        )
    return path


def read_pods(path: Path) -> list[TracePod]:
    """Reads the pods of a trace. Raises PlimsollError, with file, line and column, if it is invalid."""
    seen: dict[str, int] = {}
    pods = []
    for where, row in _rows(path, _PODS):
        name = (row.get("name") or "").strip()
        if not name:
            raise PlimsollError(f"{where}, column name: is empty", "name every pod")
        again = seen.get(name, 0)
        seen[name] = again + 1
        pods.append(
            TracePod(
                key=f"{name} #{again}" if again else name,
                name=name,
                gpus=_number(where, row, "num_gpu", most=MAX_DEVICES),
                gpu_milli=_number(where, row, "gpu_milli", most=GPU_MILLI),
                models=tuple(sorted({part.strip() for part in (row.get("gpu_spec") or "").split("|")} - {""})),
                cpu_milli=_number(where, row, "cpu_milli", default=0),
                memory_mib=_number(where, row, "memory_mib", default=0),
            )
        )
    return pods


def read_nodes(path: Path) -> list[TraceNode]:
    """Reads the nodes with GPUs. Raises PlimsollError as `read_pods`."""
    nodes = []
    for where, row in _rows(path, _NODES):
        model = (row.get("model") or "").strip()
        gpus = _number(where, row, "gpu", most=MAX_DEVICES)
        if gpus and not model:
            raise PlimsollError(f"{where}, column model: is empty", "name the model of the node's GPUs")
        if gpus:
            figures = (_number(where, row, column) for column in ("cpu_milli", "memory_mib"))
            nodes.append(TraceNode(model, gpus, *figures))
    return nodes


def _rows(path: Path, needed: tuple[str, ...]) -> Iterator[tuple[str, dict[str, str | None]]]:
    """Each row with its place in the file."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True)
            header = [column.strip() for column in reader.fieldnames or ()]
            reader.fieldnames = header
            missing = [column for column in needed if column not in header]
            if missing:
                what = f"column{'s' if len(missing) > 1 else ''} {', '.join(missing)} missing" if header else "is empty"
                raise PlimsollError(f"{path}: {what}", f"the first line must name {', '.join(needed)}")
            for row in reader:
                yield f"{path}, line {reader.line_num}", row
    except OSError as error:
        raise PlimsollError(f"{path}: {error.strerror}", "give the path of a CSV file") from None
    except UnicodeDecodeError:
        raise PlimsollError(f"{path}: is not UTF-8 text", "give the path of a CSV file") from None
    except csv.Error as error:
        raise PlimsollError(f"{path}, line {reader.line_num}: {error}", "mend the line") from None


def _number(
    where: str, row: dict[str, str | None], column: str, *, most: int | None = None, default: int | None = None
) -> int:
    text = (row.get(column) or "").strip()
    if not text and default is not None:
        return default
    # Tables that were read with gaps and written again have 500.0 for 500.
    text = re.sub(r"\.0*$", "", text)
    if text.isascii() and text.isdigit() and len(text) <= 15 and (most is None or int(text) <= most):
        return int(text)
    limit = "of at least 0" if most is None else f"from 0 to {most}"
    raise PlimsollError(f"{where}, column {column}: {text!r} is not a whole number {limit}", "mend the value")

from collections.abc import Iterable
from importlib import resources
from pathlib import Path

import pytest

from plimsoll.errors import PlimsollError
from plimsoll.model.dra import ResourceSlice
from plimsoll.sandbox.nodes import (
    ListedNode,
    gpu_models,
    node_manifest,
    parse_node_list,
    read_node_list,
    slice_manifest,
)

HEADER = "sn,cpu_milli,memory_mib,gpu,model"


def parsed(*rows: str, header: str = HEADER) -> list[ListedNode]:
    lines: Iterable[str] = [f"{line}\n" for line in (header, *rows)]
    return list(parse_node_list(lines, "nodes.csv"))


def test_a_row_becomes_a_node_with_discovery_labels() -> None:
    [node] = parsed("n-1,64000,262144,2,P100")

    made = node_manifest(node)

    assert made["metadata"]["labels"] == {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": "n-1",
        "kubernetes.io/os": "linux",
        "nvidia.com/gpu.count": "2",
        "nvidia.com/gpu.family": "pascal",
        "nvidia.com/gpu.memory": "16384",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": "Tesla-P100-PCIE-16GB",
    }
    assert made["metadata"]["annotations"] == {"kwok.x-k8s.io/node": "fake"}
    assert made["status"]["allocatable"] == made["status"]["capacity"]
    assert made["status"]["allocatable"] == {
        "cpu": "64000m",
        "memory": "262144Mi",
        "ephemeral-storage": "1000Gi",
        "pods": "110",
        "nvidia.com/gpu": "2",
    }


def test_a_node_without_gpus_has_no_gpu_label_whatever_its_model_says() -> None:
    [node] = parsed("n-1,64000,262144,0,whatever")

    made = node_manifest(node)

    assert not [key for key in made["metadata"]["labels"] if key.startswith("nvidia.com/")]
    assert "nvidia.com/gpu" not in made["status"]["capacity"]


def test_columns_may_come_in_any_order_and_with_others() -> None:
    [node] = parsed("T4,x,1,n-1,4000,8192", header="model,rack,gpu,sn,cpu_milli,memory_mib")

    assert (node.name, node.gpus, node.cpu_milli) == ("n-1", 1, 4000)


def test_gpus_of_a_driver_are_published_as_devices_that_pods_claim() -> None:
    plugin, claimed, none = parsed(
        "n-1,64000,262144,2,H100,", "n-2,64000,262144,2,H100,gpu.nvidia.com", "n-3,64000,262144,0,,gpu.nvidia.com",
        header=f"{HEADER},driver",
    )  # fmt: skip
    assert (plugin.driver, none.driver) == ("", "")
    node, made = node_manifest(claimed), slice_manifest(claimed, "u")
    assert not [key for key in node["metadata"]["labels"] if key.startswith("nvidia.com/")]
    assert "nvidia.com/gpu" not in node["status"]["capacity"]
    read = ResourceSlice.read(made)
    assert (read.driver, read.node_name) == ("gpu.nvidia.com", "n-2")
    assert made["metadata"]["ownerReferences"][0]["uid"] == "u"
    devices = made["spec"]["devices"]
    assert [each["attributes"]["productName"] for each in devices] == [{"string": "NVIDIA H100 80GB HBM3"}] * 2
    assert len({each["attributes"]["uuid"]["string"] for each in devices}) == 2


@pytest.mark.parametrize(
    ("row", "place"),
    [("n-1,1000,1024,1,T4,other.dev", "driver"), ("n-1,1000,1024,129,T4,gpu.nvidia.com", "gpu")],
)
def test_devices_that_cannot_be_published_are_refused(row: str, place: str) -> None:
    with pytest.raises(PlimsollError, match=f"line 2, column {place}:"):
        parsed(row, header=f"{HEADER},driver")


@pytest.mark.parametrize(
    ("row", "place"),
    [
        ("N_1,1000,1024,1,T4", "line 3, column sn"),
        ("good,1000,1024,1,T4", "line 3, column sn"),
        (",1000,1024,1,T4", "line 3, column sn"),
        ("n-2,4 cores,1024,1,T4", "line 3, column cpu_milli"),
        ("n-2,0,1024,1,T4", "line 3, column cpu_milli"),
        ("n-2,1000,1Gi,1,T4", "line 3, column memory_mib"),
        ("n-2,1000,1024,-1,T4", "line 3, column gpu"),
        ("n-2,1000,1024,1.5,T4", "line 3, column gpu"),
        ("n-2,1000,1024,²,T4", "line 3, column gpu"),
        ("n-2,1000,1024,000000000000999999999999,T4", "line 3, column gpu"),
        ("n-2,1000,9999999999999,1,T4", "line 3, column memory_mib"),
        ("n-2,1000,1024,1,B9000", "line 3, column model"),
        ("n-2,1000,1024,1", "line 3"),
        ("n-2,1000,1024,1,T4,more", "line 3"),
    ],
)
def test_an_invalid_row_is_named_by_line_and_column(row: str, place: str) -> None:
    with pytest.raises(PlimsollError, match=f"^nodes.csv, {place}:"):
        parsed("good,1000,1024,1,T4", row)


def test_a_missing_column_is_named() -> None:
    with pytest.raises(PlimsollError, match="no column memory_mib"):
        parsed(header="sn,cpu_milli,gpu,model")


@pytest.mark.parametrize("content", [b"", b"sn,cpu_milli,memory_mib,gpu,model\n", b"\xff\xfe\x00"])
def test_a_file_that_lists_nothing_is_refused(tmp_path: Path, content: bytes) -> None:
    source = tmp_path / "nodes.csv"
    source.write_bytes(content)

    with pytest.raises(PlimsollError, match=str(source)):
        read_node_list(source)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlimsollError, match="No such file"):
        read_node_list(tmp_path / "none.csv")


def test_each_substitute_model_is_marked() -> None:
    table = (resources.files("plimsoll.sandbox.nodes") / "gpu_models.csv").read_text().splitlines()

    stand_ins = [line for line in table if line.split(",")[0] in ("G1", "G2", "G3")]

    assert len(stand_ins) == 3
    assert all("stand-in" in line for line in stand_ins)
    # Models of the trace stay apart from each other, so that mixed nodes are seen as mixed.
    trace = ("P100", "V100M16", "V100M32", "T4", "A10", "G1", "G2", "G3")
    assert len({gpu_models()[model].product for model in trace}) == len(trace)

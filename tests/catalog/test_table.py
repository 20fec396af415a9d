"""The built-in table of instance types, held against EC2's types as moto has them, and KAITO's table."""

import csv
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.cluster.catalog import Catalog, compare_table
from plimsoll.model.cluster import Evidence, InstanceType, product_words
from plimsoll.observe.ec2 import ec2_types

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
TABLE = {each.name: each for each in Catalog.builtin().types}
UNLISTED = {"p6e-gb200.36xlarge"}
"""Types of AWS that are not retired, and that moto lacks."""


@pytest.fixture
def ec2(aws: None, tmp_path: Path) -> dict[str, InstanceType]:
    return {each.name: each for each in ec2_types(tmp_path, NOW, "us-east-1").types}


def figures(kind: InstanceType) -> dict[str, Any]:
    return {
        "gpus": kind.gpus,
        "vcpus": kind.vcpus,
        "memory": kind.memory_mib,
        "arch": kind.arch,
        "disk": kind.disk_gib,
        "pods": kind.max_pods,
        "name": kind.api_gpu_name,
        "gpu memory": kind.api_gpu_memory_mib,
        "counted": kind.karpenter_gpus,
    }


def test_rows_of_aws_are_as_ec2_has_them(ec2: dict[str, InstanceType]) -> None:
    table = {name: figures(each) for name, each in TABLE.items() if each.cloud == "aws" and each.nvidia}
    nvidia = {name: figures(each) for name, each in ec2.items() if each.nvidia}
    assert len(nvidia) > 60
    assert {name: row for name, row in table.items() if name in nvidia} == nvidia
    assert table.keys() - nvidia.keys() == UNLISTED | {name for name in table if TABLE[name].retired}


def test_labels_of_aws_types_name_the_gpu_that_ec2_names(ec2: dict[str, InstanceType]) -> None:
    products = {name: (TABLE[name].gpu_product, each.api_gpu_name) for name, each in ec2.items() if each.nvidia}
    assert all(product and product_words(gpu) <= product_words(product) for product, gpu in products.values())


def test_kaito_has_the_same_gpus_with_at_most_their_nominal_memory() -> None:
    rows = list(csv.DictReader(Path(__file__).with_name("kaito_types.csv").read_text("utf-8").splitlines()))
    assert len(rows) > 50
    for row in rows:
        found = Catalog.builtin().lookup(row["instance_type"])
        assert found is not None, row
        assert (found.cloud, found.gpus) == (row["cloud"], int(row["gpu_count"]))
        nominal = float(row["node_gpu_memory_gib"]) * 1024
        assert found.known_memory_mib is not None
        assert 0.93 * nominal < found.gpus * found.known_memory_mib <= nominal, row
        assert product_words(row["gpu_model"]) - {"nvidia"} <= product_words(found.product), row


def test_every_row_says_how_its_figures_are_known() -> None:
    for each in TABLE.values():
        assert (each.memory_source is Evidence.UNKNOWN) == (each.gpu_memory_mib is None), each
        assert each.product_source is not Evidence.UNKNOWN, each
        assert each.nvidia == (each.product_source is not Evidence.NOMINAL), each
        assert bool(each.family) == bool(each.compute_capability) == each.nvidia, each
        assert each.list_price is None or (each.list_price.amount > 0 and each.list_price.region), each


@pytest.mark.parametrize(
    ("name", "product", "memory"),
    [
        ("g6f.large", "NVIDIA-L4-3Q", 3072),
        ("Standard_NV36ads_A10_v5", "NVIDIA-A10-24Q", 24512),
        ("Standard_NV18ads_A10_v5", None, 12288),
        ("g7.2xlarge", "NVIDIA-RTX-PRO-4500-Blackwell-Server-Edition", None),
        ("g4-standard-24", None, None),
        ("g4dn.xlarge", "Tesla-T4", 15360),
        ("Standard_NC16_A2", None, 16384),
    ],
)
def test_guesses_are_no_facts(name: str, product: str | None, memory: int | None) -> None:
    assert (TABLE[name].gpu_product, TABLE[name].known_memory_mib) == (product, memory)
    guessed = Evidence.GUESS in (TABLE[name].product_source, TABLE[name].memory_source)
    assert ("guess" in TABLE[name].describe_gpus()) == guessed


def test_a_machine_type_to_which_gpus_are_attached_is_not_known() -> None:
    catalog = Catalog.builtin()
    assert catalog.lookup("n1-standard-8") is None
    attached = {each.name: each.gpus for each in catalog.attached_to("n1-standard-16")}
    assert attached["n1-standard-16+2xnvidia-tesla-t4"] == 2
    assert {each.machine_type for each in catalog.types if each.attached} >= {"n1-standard-8", "n1-standard-16"}


ASSERTED = ("check", "--aws-region", "us-east-1", "--output", "json")


def checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rows: dict[str, InstanceType]) -> tuple[int, Any]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(Catalog, "builtin", classmethod(lambda _: Catalog(rows.values())))
    done = CliRunner().invoke(app, ["catalog", *ASSERTED])
    return done.exit_code, json.loads(done.stdout)


@pytest.mark.usefixtures("aws")
def test_the_command_finds_the_table_as_ec2_has_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, found = checked(monkeypatch, tmp_path, TABLE)
    assert (code, found["changed"], found["missing"]) == (0, [], [])
    assert "p6e-gb200.36xlarge" in found["notHere"]
    assert "p3.2xlarge" not in found["notHere"], "retired"


@pytest.mark.usefixtures("aws")
def test_the_command_names_what_differs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = {name: each for name, each in TABLE.items() if name != "g6.xlarge"}
    rows["g5.xlarge"] = replace(rows["g5.xlarge"], vcpus=5)
    code, found = checked(monkeypatch, tmp_path, rows)
    assert (code, found["missing"]) == (2, ["g6.xlarge"])
    assert found["changed"] == [{"name": "g5.xlarge", "column": "vcpus", "table": "5", "live": "4"}]


def test_prices_are_compared_with_the_list_of_their_region() -> None:
    listed = TABLE["g6.xlarge"].list_price
    assert listed is not None
    same, other = {"g6.xlarge": listed.amount}, {"g6.xlarge": 9.0}
    assert compare_table([], listed.region, same, "USD").changed == ()
    [changed] = compare_table([], listed.region, other, "USD").changed
    assert (changed.name, changed.column, changed.live) == ("g6.xlarge", "price", "9")
    assert compare_table([], "eu-west-1", other, "USD").changed == ()
    assert compare_table([], listed.region, other, "CNY").changed == ()


def test_the_command_lists_the_table_with_its_evidence() -> None:
    done = CliRunner().invoke(app, ["catalog", "list", "g4-standard-24", "--output", "json"])
    [found] = json.loads(done.stdout)["types"]
    assert (found["product_source"], found["memory_source"], found["gpu_memory_mib"]) == ("guess", "guess", 49152)
    assert found["list_price"]["currency"] == "USD"
    types = json.loads(CliRunner().invoke(app, ["catalog", "list", "-o", "json"]).stdout)["types"]
    assert len(types) == len(TABLE)
    of_amd = {each["name"] for each in types if each["resource"] == "amd.com/gpu"}
    assert {"g4ad.xlarge", "Standard_NG32ads_V620_v1", "Standard_ND96isr_MI300X_v5"} <= of_amd
    assert of_amd == {each.name for each in TABLE.values() if each.product.startswith("AMD")}

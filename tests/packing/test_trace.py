"""bench.openb: the figures of a trace, and errors of files that cannot be read."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from bench.command import app_of
from bench.openb import main

HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app_of(main), arguments)


def report(path: Path, *options: str) -> dict[str, Any]:
    result = run(str(path), "--output", "json", *options)
    assert result.exit_code == 0, result.output
    value: dict[str, Any] = json.loads(result.stdout)
    return value


def a_trace(folder: Path, *rows: str, header: str = HEADER) -> Path:
    path = folder / "pods.csv"
    path.write_text(header + "".join(f"{row}\n" for row in rows))
    return path


def test_figures_and_bins(tmp_path: Path) -> None:
    figures = report(
        a_trace(
            tmp_path, "a,1,1,1,600,", "b,1,1,1,600,", "c,1,1,1,600,", "d,1,1,1,400,",
            "e,1,1,1,600,T4", "f,1,1,1,600,T4|A100", "g,1,1,0,0,", "h,1,1,2,1000,", "i,1,1,1,1000,T4",
        ),
        "--duals",
    )  # fmt: skip
    assert figures["shares"] == 4
    assert (figures["kai_sum"], figures["best_fit"], figures["gpus"]) == (3, 3, 3)
    assert figures["rounds"] == 1
    assert sorted(name for each in figures["bins"] for name in each) == ["a", "b", "c", "d"]
    assert len(figures["bins"]) == figures["gpus"]
    assert figures["lower_bound"] == pytest.approx(3)
    assert 3 * figures["duals"]["600"] + figures["duals"]["400"] == pytest.approx(figures["lower_bound"])
    assert figures["duals"]["600"] + figures["duals"]["400"] <= 1 + 1e-9
    assert figures["constrained"]["shares"] == 6
    assert figures["constrained"]["gpus"] == 5
    assert figures["constrained"]["shares_by_gpu_spec"] == {"A100|T4": 1, "T4": 1, "any": 4}
    assert figures["all_pods"]["whole_gpus"] == 3
    assert figures["all_pods"]["gpus"] == 8
    assert figures["all_pods"]["without_gpus"] == 1


def test_kai_requests_too_few_gpus(tmp_path: Path) -> None:
    figures = report(a_trace(tmp_path, *(f"pod-{number},1,1,1,600," for number in range(5))))
    assert (figures["kai_sum"], figures["gpus"]) == (3, 5)
    assert figures["held"] == {"kai_sum": 3, "best_fit": 5, "gpus": 5}


def test_two_rows_with_the_same_name_are_two_pods(tmp_path: Path) -> None:
    figures = report(a_trace(tmp_path, "a,1,1,1,600,", "a,1,1,1,400,"))
    assert figures["bins"] == [["a", "a"]]


def test_numbers_that_were_written_as_decimals_are_read(tmp_path: Path) -> None:
    found = report(a_trace(tmp_path, "a,1.0,600.0", "b,1.,500", header="name,num_gpu,gpu_milli\n"))
    assert (found["shares"], found["gpus"]) == (2, 2)


def test_no_shares(tmp_path: Path) -> None:
    figures = report(a_trace(tmp_path))
    assert (figures["shares"], figures["gpus"], figures["bins"], figures["rounds"]) == (0, 0, [], 0)


def test_several_traces_in_text(tmp_path: Path) -> None:
    path = a_trace(tmp_path, "a,1,1,1,600,")
    result = run(str(path), str(path))
    assert result.exit_code == 0
    assert result.stdout.count("pods ") >= 2


def test_on_nodes(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn1,8000,16384,2,T4\nn2,8000,16384,0,\n")
    figures = report(a_trace(tmp_path, "a,8000,1,1,100,", "b,8000,1,1,100,"), "--nodes", str(nodes))
    assert figures["gpus"] == 1
    assert figures["on_nodes"]["gpus"] == figures["on_nodes"]["lower_bound_gpus"] == 4
    assert figures["on_nodes"]["best_fit"] == 4


def test_on_nodes_of_one_shape(tmp_path: Path) -> None:
    """gpu_spec does not count. A pod with more GPUs than a node has is not counted."""
    rows = [f"heavy-{number},11000,1,1,500," for number in range(16)]
    rows += [f"light-{number},1000,1,1,500,T4" for number in range(16)]
    trace = a_trace(tmp_path, *rows, "whole,1000,1,8,1000,", "wide,1000,1,9,1000,")
    figures = report(trace, "--shape", "8:96000:1152000")
    shares, every = figures["shares_on_nodes"], figures["on_nodes"]
    assert (shares["pods"], shares["gpus"], shares["lower_bound_gpus"]) == (32, 16, 16)
    assert shares["best_fit"] >= 16
    assert (every["pods"], every["unplaced"], every["gpus"]) == (34, 1, 24)
    text = run(str(trace), "--shape", "8:96000:1152000")
    assert text.exit_code == 0
    assert "GPUs of new nodes" in text.stdout


@pytest.mark.parametrize(
    ("options", "output_text"),
    [
        (("--shape", "8:96000"), "is not GPUS:CPU_MILLI:MEMORY_MIB"),
        (("--shape", "eight:1:1"), "is not GPUS:CPU_MILLI:MEMORY_MIB"),
        (("--shape", "0:1:1"), "has no GPUs"),
        (("--shape", "8:1:1", "--nodes", "nodes.csv"), "give one of them"),
    ],
)
def test_errors_of_the_nodes_file_are_reported(tmp_path: Path, options: tuple[str, ...], output_text: str) -> None:
    result = run(str(a_trace(tmp_path)), *options)
    assert result.exit_code == 1
    assert output_text in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("text", "output_text"),
    [
        ("", "is empty"),
        ("name,num_gpu\na,1\n", "column gpu_milli missing"),
        (HEADER + "a,1,1,1,many,\n", "line 2, column gpu_milli: 'many' is not a whole number from 0 to 1000"),
        (HEADER + "a,1,1,1,500,\nb,1,1,-1,500,\n", "line 3, column num_gpu: '-1'"),
        (HEADER + "a,1,1,1,1500,\n", "line 2, column gpu_milli: '1500'"),
        (HEADER + ",1,1,1,500,\n", "line 2, column name: is empty"),
        (HEADER + "a,1,1,1\n", "line 2, column gpu_milli: ''"),
    ],
)
def test_errors_name_file_line_and_column(tmp_path: Path, text: str, output_text: str) -> None:
    path = tmp_path / "pods.csv"
    path.write_text(text)
    result = run(str(path))
    assert result.exit_code == 1
    message = " ".join(result.stderr.split())
    assert "pods.csv" in message
    assert output_text in message


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    result = run(str(tmp_path / "none.csv"))
    assert result.exit_code == 1
    assert "No such file" in result.stderr

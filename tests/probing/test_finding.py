"""The GPU that a probe finds, and its exit code if there are none or several."""

import os
import runpy
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.probe import NoGPUError, PartitionedGPUError, SeveralGPUsError, find_gpu, sources
from tests.probing.driver_files import OTHER, R570, RELEASES, UNOPENED, UUID, a_device, a_gpu, a_mig_instance


def find(root: Path, timeout: float = 0.0) -> str:
    return find_gpu(sources(root), timeout)


def main(*arguments: str) -> object:
    """Runs `python -m plimsoll.probe` in this process, and returns its exit code."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["plimsoll.probe", *arguments])
        runpy.run_module("plimsoll.probe", run_name="__main__")
    return ended.value.code


class Nvml(types.ModuleType):
    """NVML's bindings, with the GPUs of the test."""

    NVML_DEVICE_MIG_ENABLE = 1

    class NVMLError(Exception):
        pass

    def __init__(self, uuids: list[str], mig: int | None = 0, there: bool = True, as_bytes: bool = False) -> None:
        super().__init__("pynvml")
        self.uuids, self.mig, self.there, self.as_bytes = uuids, mig, there, as_bytes
        self.open = 0

    def nvmlInit(self) -> None:
        if not self.there:
            raise self.NVMLError("NVML Shared Library Not Found")
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:
        return len(self.uuids)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetUUID(self, device: int) -> str | bytes:
        return self.uuids[device].encode() if self.as_bytes else self.uuids[device]

    def nvmlDeviceGetMigMode(self, _device: int) -> tuple[int, int]:
        if self.mig is None:
            raise self.NVMLError("Not Supported")
        return self.mig, self.mig


@pytest.fixture(autouse=True)
def no_nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disables NVML, so that a GPU of the machine does not affect these tests."""
    monkeypatch.setitem(sys.modules, "pynvml", Nvml([], there=False))


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_the_files_of_every_driver_name_the_gpu(tmp_path: Path, release: str) -> None:
    a_gpu(tmp_path, release=release)
    assert find(tmp_path) == UUID


def test_without_a_gpu_the_error_names_the_searched_paths(tmp_path: Path) -> None:
    with pytest.raises(NoGPUError, match=r"files: none; nvml: not available"):
        find(tmp_path)


def test_several_are_named(tmp_path: Path) -> None:
    a_gpu(tmp_path)
    a_gpu(tmp_path, OTHER, "0000:08:00.0")
    with pytest.raises(SeveralGPUsError, match=rf"2 GPUs.*{UUID}.*{OTHER}"):
        find(tmp_path)


def test_gpus_of_the_node_without_a_device_file_are_not_the_containers(tmp_path: Path) -> None:
    """As under CDI, where /proc shows all GPUs of the node."""
    a_gpu(tmp_path)  # of minor 3
    a_gpu(tmp_path, OTHER, "0000:08:00.0", R570.replace("Minor: \t 3", "Minor: \t 4"))
    a_gpu(tmp_path, UNOPENED, "0000:09:00.0", R570.replace("Minor: \t 3", "Minor: \t 30"))
    a_mig_instance(tmp_path, minor=5)
    a_device(tmp_path, 3)
    assert find(tmp_path) == UUID
    a_mig_instance(tmp_path, minor=3)
    with pytest.raises(PartitionedGPUError):
        find(tmp_path)


def test_gpus_with_device_files_are_several(tmp_path: Path) -> None:
    a_gpu(tmp_path)
    a_gpu(tmp_path, OTHER, "0000:08:00.0", R570.replace("Minor: \t 3", "Minor: \t 4"))
    for minor in (3, 4):
        a_device(tmp_path, minor)
    with pytest.raises(SeveralGPUsError):
        find(tmp_path)


def test_a_second_gpu_counts_even_if_it_cannot_be_read(tmp_path: Path) -> None:
    a_gpu(tmp_path)
    a_gpu(tmp_path, address="0000:08:00.0", release="")
    with pytest.raises(SeveralGPUsError):
        find(tmp_path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no line `GPU UUID`"),
        ("GPU UUID: \t " + UNOPENED, "reads 'GPU-???"),
        ("GPU UUID: 0", "reads '0'"),
        ("Model: GPU UUID: " + UUID, "no line"),
        ("GPU UUID: MIG-5a1d4d5e-0b5f-8f1c-93a4-2d0a6f1c7e11", "reads 'MIG-"),
        ("\x00\xff garbage \n\n", "no line"),
    ],
)
def test_an_unreadable_file_is_reported(tmp_path: Path, text: str, problem: str) -> None:
    a_gpu(tmp_path, release=text)
    with pytest.raises(NoGPUError) as raised:
        find(tmp_path)
    assert problem in raised.value.message


def test_a_file_without_permission_is_reported(tmp_path: Path) -> None:
    file = a_gpu(tmp_path)
    file.unlink()
    file.mkdir()
    with pytest.raises(NoGPUError, match="Is a directory"):
        find(tmp_path)


def test_a_slice_is_refused(tmp_path: Path) -> None:
    a_gpu(tmp_path)
    a_mig_instance(tmp_path)
    with pytest.raises(PartitionedGPUError, match="MIG"):
        find(tmp_path)


@pytest.mark.parametrize("as_bytes", [False, True])
@pytest.mark.parametrize("mig", [0, None])
def test_nvml_is_used_if_the_files_have_no_uuid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mig: int | None, as_bytes: bool
) -> None:
    a_gpu(tmp_path, UNOPENED)
    nvml = Nvml([UUID], mig, as_bytes=as_bytes)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    assert find(tmp_path) == UUID
    assert nvml.open == 0


def test_several_gpus_and_slices_of_nvml_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Nvml([UUID, OTHER]))
    with pytest.raises(SeveralGPUsError):
        find(tmp_path)
    monkeypatch.setitem(sys.modules, "pynvml", Nvml([UUID], mig=1))
    with pytest.raises(PartitionedGPUError):
        find(tmp_path)


def test_a_gpu_that_appears_in_time_is_found(tmp_path: Path) -> None:
    looks = sources(tmp_path)
    files, asked = looks["files"], []

    def late() -> Any:
        asked.append(1)
        if len(asked) == 3:
            a_gpu(tmp_path)
        return files()

    assert find_gpu({**looks, "files": late}, timeout=30.0) == UUID


def test_printing_needs_no_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_gpu(tmp_path)
    assert main("--print", "--root", str(tmp_path)) == 0
    assert capsys.readouterr().out == f"{UUID}\n"


@pytest.mark.parametrize(("gpus", "code"), [([], 3), ([UUID, OTHER], 4)])
def test_each_way_to_fail_has_its_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], gpus: list[str], code: int
) -> None:
    for number, uuid in enumerate(gpus):
        a_gpu(tmp_path, uuid, f"0000:0{number}:00.0")
    assert main("--print", "--root", str(tmp_path), "--patience", "0") == code
    assert capsys.readouterr().err.startswith("error: ")


def test_a_slice_has_an_exit_code(tmp_path: Path) -> None:
    a_mig_instance(tmp_path)
    assert main("--print", "--root", str(tmp_path)) == 5


def test_outside_of_a_pod_it_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("POD_NAME", "POD_NAMESPACE", "KUBERNETES_SERVICE_HOST"):
            patch.delenv(name, raising=False)
        assert main() == 1
    assert "POD_NAMESPACE, POD_NAME" in capsys.readouterr().err


def test_the_command_line_has_the_probe(tmp_path: Path) -> None:
    a_gpu(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "plimsoll", "probe", "--print", "--root", str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )
    assert done.stdout == f"{UUID}\n"


def test_the_command_holds_the_gpu_unless_asked_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, Any]] = []

    def run(**options: Any) -> int:
        given.append(options)
        return 0

    monkeypatch.setattr("plimsoll.cli.probe.run", run)
    for options in ([], ["--once"], ["--print"]):
        assert CliRunner().invoke(app, ["probe", *options]).exit_code == 0
    assert [(each["show"], each["once"]) for each in given] == [(False, False), (False, True), (True, False)]


def test_it_starts_without_heavy_imports() -> None:
    code = "import sys, plimsoll.probe.__main__; sys.exit(bool({'kubernetes', 'pydantic', 'typer'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", code], check=True)

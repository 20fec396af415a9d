"""The SDK for Go is compiled, with a program that uses it and one that names a field that there is not."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from plimsoll.sandbox.parts import Installation, find_programs, missing_programs, part
from tests.pages import CHECKOUT

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(shutil.which("go") is None, reason="needs go")]

MODULE = "example.com/pulumi-plimsoll/sdk/go"
PROGRAM = """package main

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"example.com/pulumi-plimsoll/sdk/go/plimsoll"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		gpu := &plimsoll.QueueResourceArgs{Quota: pulumi.Float64(8)}
		queue, err := plimsoll.NewQueue(ctx, "research", &plimsoll.QueueArgs{
			Resources: &plimsoll.QueueResourcesArgs{Gpu: gpu},
		})
		if err != nil {
			return err
		}
		ctx.Export("labels", queue.PodLabels)
		return nil
	})
}
"""


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the release packs, with the versions of its dependencies that the generator itself is compiled with."""
    Installation(missing_programs(find_programs(["pulumi-gen-sdk"]))).run()
    generator, folder = part("pulumi-gen-sdk"), tmp_path_factory.mktemp("go") / "go"
    program = generator.cached / "pulumi-gen-sdk"
    subprocess.run([program, "go", CHECKOUT / "components" / "schema.json", folder], check=True)
    assert f"module {MODULE}\n" in (folder / "go.mod").read_text()
    pinned = (generator.source / "go.mod").read_text()
    (folder / "go.mod").write_text(re.sub(r"^module .*", f"module {MODULE}", pinned, flags=re.MULTILINE))
    shutil.copy(generator.source / "go.sum", folder)
    return folder


def build(sdk: Path, program: str) -> "subprocess.CompletedProcess[str]":
    """As parts are built, so that what they share is compiled once."""
    (sdk / "program").mkdir(exist_ok=True)
    (sdk / "program" / "main.go").write_text(program)
    command = ["env", "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off", "go", "build", "-trimpath"]
    return subprocess.run([*command, "-buildvcs=false", "./..."], cwd=sdk, capture_output=True, text=True, check=False)


def test_a_program_in_go_is_compiled_and_a_wrong_field_is_named(sdk: Path) -> None:
    done = build(sdk, PROGRAM)
    assert done.returncode == 0, done.stderr
    wrong = build(sdk, PROGRAM.replace("Quota:", "Qouta:"))
    assert wrong.returncode != 0
    assert "unknown field Qouta in struct literal of type plimsoll.QueueResourceArgs" in wrong.stderr

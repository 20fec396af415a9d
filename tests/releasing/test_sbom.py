"""The SBOM of the image lists what the image contains."""

import json
from pathlib import Path

import pytest

from image.sbom import write_sbom

GO = """#!/bin/sh
printf '%s: go1.99.1\\n' "$3"
cat "$3"
"""
"""Each program is what `go version -m` prints of it after its name."""


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python package, a program, and Pulumi's plugin with the lock beside its folder."""
    go = tmp_path / "path" / "go"
    go.parent.mkdir()
    go.write_text(GO)
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(go.parent), prepend=":")
    package = tmp_path / "site" / "some_package-1.2.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: some.package\nVersion: 1.2\nLicense: MIT\n")
    (tmp_path / "pulumi").write_text("\tmod\texample.com/pulumi\tv3.1.0\n\tdep\texample.com/both\tv1.0.0\n")
    plugin = tmp_path / "home" / "plugins" / "resource-kubernetes-v4.30.0"
    plugin.mkdir(parents=True)
    (plugin / "pulumi-resource-kubernetes").write_text(
        "\tmod\texample.com/provider\t(devel)\n\tdep\texample.com/both\tv1.0.0\n\tdep\texample.com/helm\tv3.2.1\n"
    )
    plugin.with_name(f"{plugin.name}.lock").touch()
    return tmp_path


def purls(context: Path, home: Path) -> list[str]:
    write_sbom(context / "sbom", context / "site", [context / "pulumi"], home)
    return [each["purl"] for each in json.loads((context / "sbom").read_text())["components"]]


def test_python_packages_programs_and_the_plugin_are_listed_once(context: Path) -> None:
    assert purls(context, context / "home") == [
        "pkg:github/pulumi/pulumi-kubernetes@v4.30.0",
        "pkg:golang/example.com/both@v1.0.0",
        "pkg:golang/example.com/helm@v3.2.1",
        "pkg:golang/example.com/pulumi@v3.1.0",
        "pkg:golang/stdlib@1.99.1",
        "pkg:pypi/some-package@1.2",
    ]


def test_a_plugin_that_is_built_is_listed_by_its_module(context: Path) -> None:
    """The engine finds it under the version of the SDK, which is not its own."""
    (plugin,) = context.glob("home/plugins/*/pulumi-resource-kubernetes")
    plugin.write_text(
        "\tmod\texample.com/main\t(devel)\n\tdep\tgithub.com/pulumi/pulumi-kubernetes/provider/v4\tv4.0.0-2026\n"
    )
    assert purls(context, context / "home") == [
        "pkg:golang/example.com/both@v1.0.0",
        "pkg:golang/example.com/pulumi@v3.1.0",
        "pkg:golang/github.com/pulumi/pulumi-kubernetes/provider/v4@v4.0.0-2026",
        "pkg:golang/stdlib@1.99.1",
        "pkg:pypi/some-package@1.2",
    ]

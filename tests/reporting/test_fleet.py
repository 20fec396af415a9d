"""`--fleet` of `status` and `audit` with unreachable clusters: each says its error."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.errors import PlimsollError
from tests.builders import a_gpu_node, a_snapshot, an_environment

SOUND = {
    "current-context": "here",
    "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9"}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
}
"""An address without a server."""
BROKEN: dict[str, tuple[Any, str]] = {
    "nobody": (SOUND, "cannot be reached"),
    "text": ("text", "not a kubeconfig"),
    "list": ([1, 2], "not a kubeconfig"),
    "context": ({**SOUND, "current-context": "there"}, "there"),
    "server": ({**SOUND, "clusters": [{"name": "c", "cluster": {}}]}, "cluster"),
    "token": ({**SOUND, "users": [{"name": "u", "user": {"token": "two\nlines"}}]}, "token"),
    "proxy": (
        {**SOUND, "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9", "proxy-url": "socks5://x"}}]},
        "proxy-url",
    ),
}


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.DependencyWarning")
def test_each_cluster_that_cannot_be_read_is_a_row_that_says_why(tmp_path: Path) -> None:
    for name, (content, _) in BROKEN.items():
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(content))
    clusters = [{"name": name, "kubeconfig": f"{name}.yaml"} for name in (*BROKEN, "missing")]
    file = tmp_path / "fleet.yaml"
    file.write_text(yaml.safe_dump({"clusters": clusters}))
    done = CliRunner().invoke(app, ["status", "--fleet", str(file), "--output", "json"], catch_exceptions=False)
    assert done.exit_code == 0
    rows = {row["cluster"]: row["error"] for row in json.loads(done.stdout)}
    assert list(rows) == [*BROKEN, "missing"]
    for name, (_, why) in BROKEN.items():
        assert why in rows[name]


def a_fleet(folder: Path) -> Path:
    (folder / "away.yaml").write_text(yaml.safe_dump(SOUND))
    clusters = [{"name": "away", "kubeconfig": "away.yaml"}, {"name": "other", "kubeconfig": "missing.yaml"}]
    (folder / "fleet.yaml").write_text(yaml.safe_dump({"clusters": clusters}))
    return folder / "fleet.yaml"


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.DependencyWarning")
@pytest.mark.parametrize("output", ["text", "json", "html"])
def test_an_audit_of_a_fleet_says_which_clusters_it_could_not_read(tmp_path: Path, output: str) -> None:
    """In each form; the exit code is 1, because none could be read."""
    run = ["audit", "--fleet", str(a_fleet(tmp_path)), "-o", output]
    done = CliRunner().invoke(app, run, catch_exceptions=False)
    assert done.exit_code == 1
    assert "127.0.0.1:9" in done.stdout
    assert "missing.yaml" in done.stdout
    if output == "json":
        assert [each["cluster"] for each in json.loads(done.stdout)["clusters"]] == ["away", "other"]


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.DependencyWarning")
def test_an_audit_of_a_fleet_adds_the_clusters_that_it_could_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums by currency: amounts in different ones are not added."""
    own = a_gpu_node("own", "NVIDIA-L4", instance_type="own-type")
    in_euros = {"currency": "EUR", "prices": {"own-type": 2.0}}
    snapshots = {
        "https://listed:9": a_snapshot(a_gpu_node("l4", "NVIDIA-L4", instance_type="g6.xlarge")),
        "https://own:9": a_snapshot(own, environment=an_environment(catalog=in_euros)),
        "https://unpriced:9": a_snapshot(own),
    }
    monkeypatch.setattr("plimsoll.cli.fleet.read_cluster", lambda connection, _, **__: snapshots[connection.server])
    clusters = []
    for server in (*snapshots, "nowhere"):
        name = server.removeprefix("https://").removesuffix(":9")
        (tmp_path / f"{name}.yaml").write_text(
            yaml.safe_dump({**SOUND, "clusters": [{"name": "c", "cluster": {"server": server}}]})
        )
        clusters.append({"name": name, "kubeconfig": f"{name}.yaml"})
    clusters[-1]["kubeconfig"] = "missing.yaml"
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump({"clusters": clusters}))
    run = ["audit", "--fleet", str(tmp_path / "fleet.yaml")]
    done = CliRunner().invoke(app, run, catch_exceptions=False)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "3 clusters: 3 nodes with 3 GPUs, 3 idle"
    assert [line.split(",")[0] for line in lines[1:3]] == ["2 EUR an hour", "0.8048 USD an hour"]
    assert lines[3:5] == ["1 node without a price", "1 cluster could not be read"]
    document = json.loads(CliRunner().invoke(app, [*run, "-o", "json"], catch_exceptions=False).stdout)["clusters"]
    assert [(each["cluster"], bool(each["error"])) for each in document] == [
        ("listed", False), ("own", False), ("unpriced", False), ("nowhere", True),
    ]  # fmt: skip


@pytest.mark.parametrize("more", [["--stack", "x"], ["--kubeconfig", "x"], ["--context", "x"], ["-f", "x"]])
def test_an_audit_of_a_fleet_is_refused_what_is_of_one_cluster(tmp_path: Path, more: list[str]) -> None:
    with pytest.raises(PlimsollError, match=r"has no effect with --fleet"):
        CliRunner().invoke(
            app, ["audit", "--fleet", str(a_fleet(tmp_path)), *more], catch_exceptions=False, standalone_mode=False
        )


@pytest.mark.parametrize("more", [["--watch"], ["--kubeconfig", "x"], ["--context", "x"], ["--namespace", "x"]])
def test_options_of_a_single_cluster_are_refused_with_a_fleet(tmp_path: Path, more: list[str]) -> None:
    with pytest.raises(PlimsollError, match=f"{more[0]} .* --fleet"):
        CliRunner().invoke(
            app,
            ["status", "--fleet", str(tmp_path / "fleet.yaml"), *more],
            catch_exceptions=False,
            standalone_mode=False,
        )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "clusters"),
        (b"clusters: []", "clusters"),
        (b"clusters: [{name: a}, {name: a}]", "two clusters"),
        (b"clusters: [{nam: a}]", "nam"),
        (b"clusters: [", "fleet.yaml"),
        (b"clusters: [{name: \xff}]", "fleet.yaml"),
    ],
)
def test_an_invalid_file_is_an_error_that_names_the_field(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_bytes(content)
    with pytest.raises(PlimsollError) as refused:
        CliRunner().invoke(app, ["status", "--fleet", str(file)], catch_exceptions=False, standalone_mode=False)
    assert message in f"{refused.value} {refused.value.hint}"

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from plimsoll.provider import Chart, ChartError, Secret, prerequisites, resource_name
from tests.provider.conftest import Sessions


def an_object(api_version: str, kind: str, name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata | more.pop("metadata", {}), **more}


def test_namespaces_and_definitions_come_before_what_needs_them() -> None:
    objects = [
        an_object("example.com/v1", "Widget", "w", "team"),
        an_object("v1", "ConfigMap", "elsewhere", "default"),
        an_object("v1", "Namespace", "team"),
        an_object(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "widgets.example.com",
            spec={"group": "example.com", "names": {"kind": "Widget"}},
        ),
    ]
    assert prerequisites(objects) == {0: {2, 3}, 1: set(), 2: set(), 3: set()}


def test_declared_dependencies_are_kept() -> None:
    depends = {"annotations": {"config.kubernetes.io/depends-on": "apps/namespaces/a/Deployment/db, /Namespace/other"}}
    objects = [
        an_object("v1", "ConfigMap", "c", "a", metadata=depends),
        an_object("apps/v1", "Deployment", "db", "a"),
        an_object("v1", "Namespace", "other"),
    ]
    assert prerequisites(objects)[0] == {1, 2}


def test_children_are_named_as_the_plugin_names_them() -> None:
    assert resource_name("shop", an_object("v1", "ConfigMap", "c", "a")) == "shop:a/c"
    assert resource_name("shop", an_object("v1", "Namespace", "a")) == "shop:a"
    assert resource_name("", an_object("v1", "Namespace", "a")) == "a"


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"chart": "x", "postRenderer": {"command": "sed"}}, "postRenderer"),
        ({"chart": "x", "repositoryOpts": {"repo": "https://a", "password": "p"}}, "repositoryOpts.password"),
        ({"chart": "./not-here"}, "./not-here"),
    ],
)
def test_unsupported_features_are_refused_by_name(sessions: Sessions, inputs: dict[str, Any], message: str) -> None:
    with pytest.raises(ChartError, match=message):
        Chart.of("shop", inputs, sessions())


def test_a_missing_helm_is_an_error(sessions: Sessions, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ChartError, match="helm is not on PATH"):
        Chart.of("shop", {"chart": str(tmp_path)}, sessions()).render(sessions())


def a_helm(folder: Path, script: str) -> None:
    """A `helm` on a PATH of its own that runs `script`."""
    program = folder / "helm"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.fixture
def rendering(sessions: Sessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Renders a chart with `script` instead of helm."""

    def render(script: str, served: Sequence[str] = ("v1", "apps/v1"), **inputs: Any) -> list[dict[str, Any]]:
        a_helm(tmp_path, script)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        session = sessions()
        monkeypatch.setattr(session.objects, "capabilities", lambda: ("v1.36.3", list(served)))
        return Chart.of("shop", {"chart": "oci://example.com/shop", **inputs}, session).render(session)

    return render


def test_lists_are_unrolled_and_objects_put_in_their_namespace(rendering: Any) -> None:
    objects = rendering(
        """cat <<'X'
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {day: 2024-01-01, sign: =, ratio: 10:20}}
- {apiVersion: v1, kind: Namespace, metadata: {name: b}}
---
# nothing
X""",
        namespace="team",
    )
    assert [(obj["kind"], obj["metadata"].get("namespace")) for obj in objects] == [
        ("ConfigMap", "team"),
        ("Namespace", None),
    ]
    assert objects[0]["data"] == {"day": "2024-01-01", "sign": "=", "ratio": "10:20"}


def test_secret_values_reach_helm_by_its_input_alone_and_stay_secret_in_the_objects(rendering: Any) -> None:
    script = """case "$*" in *hush*) exit 9;; esac
word=$(sed 's/.*"word":"\\([a-z]*\\)".*/\\1/')
echo "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: say $word, b: open}}" """
    objects = rendering(script, values={"word": Secret("hush")})
    assert objects[0]["data"] == {"a": Secret("say hush"), "b": "open"}


def test_errors_of_helm_are_passed_on_without_secrets(rendering: Any) -> None:
    secrets = {text: Secret(text) for text in ("hu", "hushed", "hus", "hushe", "hush")}
    with pytest.raises(ChartError, match=r"bad value \[secret\]\."):
        rendering("cat > /dev/null; echo 'Error: bad value hushed.' >&2; exit 1", values=secrets)


def test_the_version_and_crds_are_passed_to_helm(rendering: Any, tmp_path: Path) -> None:
    rendering(f'cat > /dev/null; echo "$*" > {tmp_path}/asked', version="1.2.3", skipCrds=True)
    asked = (tmp_path / "asked").read_text()
    assert "template shop oci://example.com/shop --namespace default --no-hooks" in asked
    assert "--version 1.2.3" in asked
    assert "--include-crds" not in asked
    rendering(f'cat > /dev/null; echo "$*" > {tmp_path}/asked')
    assert "--include-crds" in (tmp_path / "asked").read_text()


def test_a_cluster_may_serve_thousands_of_kinds(rendering: Any, tmp_path: Path) -> None:
    served = [f"ec2.aws.example.com/v1beta1/RouteTableAssociation{number:04}" for number in range(3000)]
    rendering(f'cat > /dev/null; printf "%s\\n" "$@" > {tmp_path}/asked', served)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert [argument for argument in asked if "api-versions" in argument] == [f"--api-versions={k}" for k in served]

"""Renders a Helm chart to objects with the helm CLI, as the plugin's `helm.sh/v4:Chart` does."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson
import yaml

from plimsoll.errors import PlimsollError
from plimsoll.kube import Object, id_of, kind_of, metadata_of, name_of, namespace_of
from plimsoll.provider.session import Session
from plimsoll.provider.values import Asset, Properties, Secret, plain, secret_texts
from plimsoll.yaml_text import YamlLoader

_SECONDS: Final = 300.0
_REFUSED: Final = ("postRenderer", "keyring", "includeHooks")


class ChartError(PlimsollError):
    """A chart cannot be rendered, or uses something that is not supported; the message names it."""


@dataclass(frozen=True)
class Chart:
    """A chart to render. `release` is the release name in templates."""

    release: str
    chart: str
    namespace: str
    version: str = ""
    repo: str = ""
    values: Properties = field(default_factory=dict, repr=False)
    values_files: Sequence[Asset] = ()
    include_crds: bool = True
    flags: tuple[str, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    """Secret texts, which must not be in any message."""

    @classmethod
    def of(cls, name: str, inputs: Properties, session: Session) -> "Chart":
        """Reads the component's inputs. Raises ChartError, which names the input, for unsupported ones."""
        given = {key for key in _REFUSED if inputs.get(key)}
        repository = plain(inputs.get("repositoryOpts") or {})
        given |= {f"repositoryOpts.{key}" for key in repository if key != "repo"}
        if given:
            raise ChartError(
                f"chart {name}: {', '.join(sorted(given))}: not supported by the built-in kubernetes provider",
                "omit it (log in to a registry with `helm registry login`), or use the kubernetes plugin "
                "(provider: plugin)",
            )
        chart = str(plain(inputs.get("chart") or ""))
        if chart.startswith((".", "/", "~")) and not Path(chart).expanduser().exists():
            raise ChartError(
                f"chart {name}: there is no {chart} (looked up from {Path.cwd()})", "give an absolute path"
            )
        named = {"devel": "--devel", "dependencyUpdate": "--dependency-update", "verify": "--verify",
                 "plainHttp": "--plain-http"}  # fmt: skip
        return cls(
            release=str(plain(inputs.get("name") or name)),
            chart=str(Path(chart).expanduser()) if chart.startswith("~") else chart,
            namespace=str(plain(inputs.get("namespace") or session.namespace)),
            version=str(plain(inputs.get("version") or "")),
            repo=str(repository.get("repo") or ""),
            values=plain(inputs.get("values") or {}),
            values_files=tuple(inputs.get("valueYamlFiles") or ()),
            include_crds=not plain(inputs.get("skipCrds")),
            flags=tuple(flag for key, flag in named.items() if plain(inputs.get(key))),
            secrets=frozenset(secret_texts(inputs)),
        )

    def render(self, session: Session) -> list[Object]:
        """The chart's objects with their namespaces, in the order of the templates, without hooks.

        Raises ChartError if helm is missing or fails.
        """
        helm = shutil.which("helm")
        if helm is None:
            raise ChartError(f"chart {self.release}: helm is not on PATH", "install helm 3, or add it to PATH")
        version, served = session.objects.capabilities()
        with tempfile.TemporaryDirectory(prefix="plimsoll-chart-") as folder:
            kubeconfig = Path(folder, "kubeconfig")
            kubeconfig.touch(mode=0o600)
            kubeconfig.write_bytes(orjson.dumps(session.kubeconfig.content))
            command = [
                helm, "template", self.release, self.chart, "--namespace", self.namespace, "--no-hooks",
                "--dry-run=server", "--kubeconfig", str(kubeconfig), "--kube-context", session.kubeconfig.context,
                "--kube-version", version, *self.flags,
            ]  # fmt: skip
            # Not as one list: Linux limits an argument to 128 KiB, and some clusters serve thousands of kinds.
            command += [f"--api-versions={each}" for each in served]
            command += ["--include-crds"] if self.include_crds else []
            command += ["--version", self.version] if self.version else []
            command += ["--repo", self.repo] if self.repo else []
            for number, asset in enumerate(self.values_files):
                command += ["--values", asset.as_file(Path(folder, f"values-{number}.yaml"))]
            text = self._run([*command, "--values", "-"])
        return list(self._parse(text, session))

    def _run(self, command: list[str]) -> str:
        try:
            # Values are passed on standard input: they may be secret, and arguments are visible to other users.
            done = subprocess.run(
                command, input=orjson.dumps(self.values), capture_output=True, timeout=_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise ChartError(f"chart {self.release}: helm took more than {_SECONDS:.0f} s") from None
        if done.returncode != 0:
            output = done.stderr.decode(errors="replace").strip().removeprefix("Error: ")
            for secret in sorted(self.secrets, key=len, reverse=True):  # one may be a part of another
                output = output.replace(secret, "[secret]")
            raise ChartError(
                f"chart {self.release} ({self.chart}): {output}", "check its name, repository, version and values"
            )
        return done.stdout.decode()

    def _parse(self, text: str, session: Session) -> Iterator[Object]:
        try:
            documents = [document for document in yaml.load_all(text, YamlLoader) if document]
        except yaml.YAMLError as error:
            raise ChartError(f"chart {self.release}: its output is not YAML: {error}") from None
        pending: list[Any] = documents[::-1]
        while pending:
            obj = pending.pop()
            if not isinstance(obj, dict) or not obj.get("kind"):
                raise ChartError(f"chart {self.release}: a template renders no Kubernetes object")
            if str(obj["kind"]).endswith("List") and isinstance(obj.get("items"), list):
                pending += obj["items"][::-1]
                continue
            kind = kind_of(obj)
            if not name_of(obj):
                raise ChartError(f"chart {self.release}: a {kind} has no metadata.name")
            obj["apiVersion"] = kind.api_version
            if kind.kind == "CustomResourceDefinition":
                session.objects.declare(obj)
            if not namespace_of(obj) and session.objects.is_namespaced(kind):
                obj["metadata"]["namespace"] = self.namespace
            yield _hide(obj, self.secrets) if self.secrets else obj


def _hide(value: Any, secrets: frozenset[str]) -> Any:
    """Marks the strings that contain a secret value of the chart."""
    if isinstance(value, dict):
        return {key: _hide(item, secrets) for key, item in value.items()}
    if isinstance(value, list):
        return [_hide(item, secrets) for item in value]
    return Secret(value) if isinstance(value, str) and any(secret in value for secret in secrets) else value


def prerequisites(objects: Sequence[Object]) -> dict[int, set[int]]:
    """For each object, by index, the objects that must exist before it.

    These are its Namespace, the CustomResourceDefinition of its kind, and the objects in its annotation
    `config.kubernetes.io/depends-on`.
    """
    namespaces: dict[str, int] = {}
    definitions: dict[tuple[str, str], int] = {}
    references: dict[str, int] = {}
    for position, obj in enumerate(objects):
        kind = kind_of(obj)
        if kind.kind == "Namespace" and not kind.group:
            namespaces[name_of(obj)] = position
        elif kind.kind == "CustomResourceDefinition":
            spec = obj.get("spec") or {}
            definitions[str(spec.get("group")), str((spec.get("names") or {}).get("kind"))] = position
        place = f"namespaces/{namespace_of(obj)}/" if namespace_of(obj) else ""
        references[f"{kind.group}/{place}{kind.kind}/{name_of(obj)}"] = position
    needed: dict[int, set[int]] = {}
    for position, obj in enumerate(objects):
        kind = kind_of(obj)
        named = str((metadata_of(obj).get("annotations") or {}).get("config.kubernetes.io/depends-on") or "")
        wanted = {references.get(reference.strip()) for reference in named.split(",")}
        wanted |= {namespaces.get(namespace_of(obj)), definitions.get((kind.group, kind.kind))}
        needed[position] = {other for other in wanted if other is not None and other != position}
    return needed


def resource_name(prefix: str, obj: Object) -> str:
    """The logical name that the plugin gives to an object of a chart."""
    return f"{prefix}:{id_of(obj)}" if prefix else id_of(obj)

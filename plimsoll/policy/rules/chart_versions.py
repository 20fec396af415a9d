"""Rules on Helm charts: exact versions, in Pulumi programs, Argo CD, Flux, k3s and other charts' dependencies."""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from plimsoll.model.meta import section
from plimsoll.policy.context import PolicyContext
from plimsoll.policy.fields import Manifest, group_of, is_kind, items, join, kind_of, text
from plimsoll.policy.rule import Family, Fault, Rule

CHART_FILE_KIND: Final = "Chart.yaml"
"""A chart's own file, which has no kind."""
_EXACT: Final = r"v?[0-9]+\.[0-9]+\.[0-9]+(?:[-+][0-9A-Za-z.+-]+)?"


class Chart(NamedTuple):
    name: str
    version: str
    field: str
    """Path of the field with the version."""


def charts(manifest: Manifest) -> Iterator[Chart]:
    """Every chart from a repository that the object uses; charts from local folders, and those that an object
    contains, have no version."""
    kind, group = kind_of(manifest), group_of(manifest)
    if kind == CHART_FILE_KIND:
        yield from _dependencies(manifest)
    elif group == "helm.sh":  # Pulumi's own resources: Chart and Release
        # A helm.v3.Chart of a program in Python tells the engine neither its chart nor its version.
        if not (text(manifest, "chart") or ".").startswith((".", "/")):
            yield _chart(manifest, "chart", "version", "")
    elif kind == "Application" and group == "argoproj.io":
        yield from _of_argo_cd(section(manifest, "spec"))
    elif kind == "HelmRelease":
        yield from _of_flux(section(manifest, "spec", "chart", "spec"))
    elif is_kind(manifest, "helm.cattle.io", "HelmChart"):
        yield from _of_k3s(section(manifest, "spec"))


def _dependencies(manifest: Manifest) -> Iterator[Chart]:
    for number, dependency in items(manifest, "dependencies"):
        if not text(dependency, "repository").startswith("file://"):
            yield _chart(dependency, "name", "version", join("dependencies", number))


def _of_argo_cd(spec: Manifest) -> Iterator[Chart]:
    sources = [("spec.source", section(spec, "source"))]
    sources += [(join("spec.sources", number), source) for number, source in items(spec, "sources")]
    for path, source in sources:
        if text(source, "chart"):
            yield _chart(source, "chart", "targetRevision", path)


def _of_flux(spec: Manifest) -> Iterator[Chart]:
    if spec and text(section(spec, "sourceRef"), "kind") in ("", "HelmRepository"):
        yield _chart(spec, "chart", "version", "spec.chart.spec")


def _of_k3s(spec: Manifest) -> Iterator[Chart]:
    in_one_file = text(spec, "chartContent") or text(spec, "chart").startswith("http")
    if not in_one_file:
        yield _chart(spec, "chart", "version", "spec")


def _chart(parent: Manifest, name: str, version: str, path: str) -> Chart:
    given = parent.get(version)
    return Chart(text(parent, name), "" if given is None else str(given), join(path, version))


def _versions(manifest: Manifest, context: PolicyContext, _: Any) -> Iterator[Fault]:
    for chart in charts(manifest):
        if not re.fullmatch(_EXACT, chart.version):
            shown = f"is {chart.version!r:.60}" if chart.version else "is not set"
            yield Fault(
                chart.field,
                f"the version of chart {chart.name or '(no name)'} {shown}, so a newer version can be installed "
                "without a change here: set one exact version, such as 0.17.2",
            )


RULES: Final = (
    Rule(
        "chart-version-pinned",
        Family.SUPPLY_CHAIN,
        "A chart has one exact version, not a range.",
        "Set the full version, such as 0.17.2.",
        ("Chart and Release of Pulumi", "Chart.yaml", "Application", "HelmRelease", "HelmChart"),
        _versions,
    ),
)

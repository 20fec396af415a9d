"""Hooks of MkDocs: pages from the root of the repository, the fields of the CRDs, the API, and links to other files.

In the repository the Markdown links to what is there. On the site, links to pages lead to pages, and other files of the
repository are named by their path.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from plimsoll.components.specs import definitions

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
FROM_ROOT: Final = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
"""Pages of the repository's root, by their names on the site."""
PACKAGES: Final = ("components", "explaining", "plan", "packing", "model", "model.api", "policy", "kaito", "ui")
"""Packages whose API is documented: those that programs of others import."""
SECTIONS: Final = ("guides", "operate", "reference", "api")
FIRST: Final = ("guides/index.md", "operate/no-node-comes.md")
"""The first pages of their sections; the others are in the order of their names."""
_LINK: Final = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_FENCE: Final = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Lists the pages of each section in the navigation, by their titles."""
    config.nav = [_section(entry) for entry in config.nav or []]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that do not stand in docs/."""
    for source, name in FROM_ROOT.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text()))
    files.append(File.generated(config, "reference/fields.md", content=fields_page()))
    for package in PACKAGES:
        files.append(
            File.generated(config, _api_page(package), content=f"# plimsoll.{package}\n\n::: plimsoll.{package}\n")
        )
    icon = (ROOT / "plimsoll" / "ui" / "static" / "icon.svg").read_text()
    files.append(File.generated(config, "pictures/icon.svg", content=icon))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrites the links outside of code."""
    name = page.file.src_uri
    here = next((ROOT / source for source, target in FROM_ROOT.items() if target == name), DOCS / name)
    parts, at = [], 0
    for fence in _FENCE.finditer(markdown):
        parts += [_with_links(markdown[at : fence.start()], here, name), fence[0]]
        at = fence.end()
    return "".join([*parts, _with_links(markdown[at:], here, name)])


def _with_links(text: str, here: Path, name: str) -> str:
    return _LINK.sub(lambda link: _link(link, here, name), text)


def _link(link: re.Match[str], here: Path, name: str) -> str:
    picture, text, target = link.groups()
    path, _, anchor = target.partition("#")
    if not path or re.match(r"[a-z]+:", path):
        return link[0]
    found = (here.parent / path).resolve()
    if not found.exists() and not (DOCS in found.parents and found.relative_to(DOCS).parts[0] == "api"):
        raise PluginError(f"{name}: {target}: no such file")
    known = FROM_ROOT.get(str(found.relative_to(ROOT))) if ROOT in found.parents else None
    if known is None and DOCS in found.parents and found.is_file():
        known = str(found.relative_to(DOCS))
    if known is None:
        return f"{text} (`{found.relative_to(ROOT)}`)" if text.strip("`") != str(found.relative_to(ROOT)) else text
    relative = os.path.relpath(known, Path(name).parent)
    return f"{picture}[{text}]({relative}{f'#{anchor}' if anchor else ''})"


def fields_page() -> str:
    """A table of the fields of each custom resource, from the schemas of their definitions."""
    lines = ["# Fields", "", "The fields of Plimsoll's custom resources, from the schemas of their definitions.", ""]
    for definition in definitions():
        kind = definition["spec"]["names"]["kind"]
        (version,) = definition["spec"]["versions"]
        schema = version["schema"]["openAPIV3Schema"]["properties"]
        lines += [f"## {kind}", ""]
        for part in ("spec", "status"):
            rows = list(_fields(schema.get(part, {}), part))
            if rows:
                lines += [f"### {kind} {part}", "", "| Field | Type | Meaning |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


def _fields(schema: dict[str, Any], path: str) -> Iterator[str]:
    for name, field in (schema.get("properties") or {}).items():
        items = field.get("items") or {}
        kind = f"list of {items.get('type', 'any')}" if field.get("type") == "array" else field.get("type", "any")
        if "enum" in field:
            kind += ": " + ", ".join(f"`{each}`" for each in field["enum"])
        default = f" Default: `{field['default']}`." if "default" in field else ""
        required = " Required." if name in (schema.get("required") or ()) else ""
        meaning = str(field.get("description", "")).replace("|", "\\|").replace("\n", " ")
        yield f"| `{path}.{name}` | {kind} | {meaning}{required}{default} |"
        yield from _fields(field, f"{path}.{name}")
        yield from _fields(items, f"{path}.{name}[]")


def _section(entry: Any) -> Any:
    (title, target) = next(iter(entry.items()))
    if isinstance(target, list):
        return {title: [_section(each) for each in target]}
    if target not in SECTIONS:
        return entry
    if target == "api":
        return {title: [{f"plimsoll.{package}": _api_page(package)} for package in PACKAGES]}
    pages = sorted(DOCS.glob(f"{target}/*.md"), key=lambda page: (str(page.relative_to(DOCS)) not in FIRST, page))
    listed = [{_title(page): str(page.relative_to(DOCS))} for page in pages]
    return {title: [*listed, *([{"Fields": "reference/fields.md"}] if target == "reference" else [])]}


def _title(page: Path) -> str:
    return next(line for line in page.read_text().splitlines() if line.startswith("# ")).removeprefix("# ")


def _api_page(package: str) -> str:
    return f"api/{package.replace('.', '-')}.md"

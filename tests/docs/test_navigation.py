"""The navigation of the documentation: its sections, and every page in it once."""

import importlib.util
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from tests.pages import CHECKOUT

DOCS = CHECKOUT / "docs"


@pytest.fixture(scope="module")
def navigation() -> Any:
    """As the site has it: by the hook that lists the pages of each section."""
    pytest.importorskip("mkdocs", reason="the group docs is not installed")
    spec = importlib.util.spec_from_file_location("pages_of_the_site", DOCS / "hooks" / "pages.py")
    assert spec is not None and spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    config: Any = SimpleNamespace(nav=yaml.safe_load((CHECKOUT / "mkdocs.yml").read_text().partition("\nnav:")[2]))
    return hook.on_config(config).nav


def pages_of(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for each in entry.values() if isinstance(entry, dict) else entry:
            yield from pages_of(each)


def test_the_sections_are_in_the_order_of_a_reader(navigation: Any) -> None:
    assert [title for entry in navigation for title in entry] == [
        "Start",
        "Guides",
        "Operate",
        "Reference",
        "Internals",
    ]


def test_every_page_is_in_it_once(navigation: Any) -> None:
    listed = [page for page in pages_of(navigation) if not page.startswith("api/")]
    of_root = ["index.md", "contributing.md", "security.md", "changelog.md", "reference/fields.md"]
    assert sorted(listed) == sorted([*(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")), *of_root])


def test_no_node_comes_is_first_in_operate(navigation: Any) -> None:
    (operate,) = [entry["Operate"] for entry in navigation if "Operate" in entry]
    assert next(pages_of(operate)) == "operate/no-node-comes.md"


def test_the_index_of_guides_is_first_and_has_a_line_for_each(navigation: Any) -> None:
    (guides,) = [list(pages_of(entry)) for entry in navigation if "Guides" in entry]
    assert guides[0] == "guides/index.md"
    listed = re.findall(r"^- \[[^\]]+\]\(([a-z-]+\.md)\): ", (DOCS / guides[0]).read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(page.removeprefix("guides/") for page in guides[1:])

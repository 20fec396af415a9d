"""The documentation site: `make docs` builds it without warnings, contains every page, and its links have targets."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.components.specs import definitions
from tests.pages import CHECKOUT, copy_of_checkout, make

pytestmark = pytest.mark.xdist_group("site")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    pytest.importorskip("mkdocs", reason="the group docs is not installed")
    checkout = copy_of_checkout(tmp_path_factory.mktemp("site") / "plimsoll")
    done = make(checkout, "docs")
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    yield checkout / "build" / "site"
    shutil.rmtree(checkout)


def text_of(page: Path) -> str:
    return re.sub(r"<[^>]+>", "", page.read_text())


def test_every_page_of_the_repository_is_on_it(site: Path) -> None:
    for page in (CHECKOUT / "docs").glob("**/*.md"):
        where = page.relative_to(CHECKOUT / "docs")
        found = site / (where.parent if where.name == "index.md" else where.with_suffix("")) / "index.html"
        assert found.exists(), page
    for name in ("contributing", "security", "changelog"):
        assert (site / name / "index.html").exists()


def test_the_fields_of_each_kind_are_those_of_its_definition(site: Path) -> None:
    text = text_of(site / "reference" / "fields" / "index.html")
    for definition in definitions():
        assert f"{definition['spec']['names']['kind']} " in text
    for field in ("spec.resource.labelSelector", "spec.catalog.prices", "status.deltas[].changes[].reason"):
        assert field in text


def test_the_api_reference_has_what_packages_export(site: Path) -> None:
    text = text_of(site / "api" / "components" / "index.html")
    assert "Namespace and thresholds of the alerts" in text
    assert "validate" in text_of(site / "api" / "plan" / "index.html")


def test_mermaid_diagrams_are_rendered_by_the_browser(site: Path) -> None:
    assert (site / "sequences" / "index.html").read_text().count('class="mermaid"') == 2


@pytest.mark.parametrize("link", ["[a](nowhere.md)", "[a](tutorial.md#no-such-heading)", "[a](../plimsoll/nowhere.py)"])
def test_a_dead_link_fails_the_build(link: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("mkdocs", reason="the group docs is not installed")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    from mkdocs.exceptions import Abort

    checkout = tmp_path / "checkout"
    (checkout / "docs").mkdir(parents=True)
    config = {
        "site_name": "a",
        "strict": True,
        "hooks": ["docs/hooks/pages.py"],
        "exclude_docs": "/hooks/",
        "nav": [{"A": "index.md"}],
        "validation": {"links": {"anchors": "warn"}},
    }
    (checkout / "mkdocs.yml").write_text(json.dumps(config))
    shutil.copytree(CHECKOUT / "docs" / "hooks", checkout / "docs" / "hooks")
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"):
        (checkout / name).write_text("# A page\n")
    shutil.copytree(CHECKOUT / "plimsoll" / "ui" / "static", checkout / "plimsoll" / "ui" / "static")
    (checkout / "docs" / "page.md").write_text(f"# A page\n\n{link}\n")
    (checkout / "docs" / "tutorial.md").write_text("# Tutorial\n")
    with pytest.raises(Abort):
        build(load_config(str(checkout / "mkdocs.yml"), site_dir=str(tmp_path / "site")))
    assert re.search(r"nowhere|no-such-heading", caplog.text), "the link is named"

"""Folders of sandboxes."""

from pathlib import Path

import pytest

from plimsoll.sandbox import Folder, write_certificates


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Folder:
    """A new one, with its certificates."""
    monkeypatch.setenv("PLIMSOLL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = Folder("a")
    folder.create()
    write_certificates(folder.certificates)
    return folder

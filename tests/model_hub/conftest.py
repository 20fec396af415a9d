"""A hub for each test."""

from collections.abc import Iterator

import pytest

from tests.model_hub.hub import Hub, a_hub


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with a_hub() as running:
        yield running

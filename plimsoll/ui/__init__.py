"""Web pages that show one cluster: read-only, live, with nothing loaded from other servers. Their content is computed
from Snapshots (`plimsoll.ui.view`), which are published to the Feed."""

from plimsoll.ui.app import create_app
from plimsoll.ui.feed import Feed
from plimsoll.ui.serving import serve
from plimsoll.ui.state import States

__all__ = [
    "Feed",
    "States",
    "create_app",
    "serve",
]

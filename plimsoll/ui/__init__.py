"""Pages of one cluster for a browser: read-only, live, without anything from other servers.

What they show is computed from Snapshots (`plimsoll.ui.view`); who has a Snapshot publishes it to the Feed.
"""

from plimsoll.ui.app import create_app
from plimsoll.ui.feed import Feed
from plimsoll.ui.serving import serve

__all__ = [
    "Feed",
    "create_app",
    "serve",
]

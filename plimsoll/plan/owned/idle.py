"""Nodes of a Workspace without replicas, which stay for the replicas to come."""

from datetime import datetime, timedelta
from typing import NamedTuple

from plimsoll.model.api import EnvironmentSpec, Provisioning, Workspace
from plimsoll.plan.owned.progress import parse_time


class Idle(NamedTuple):
    """A Workspace was scaled to 0 replicas, and its nodes stay."""

    since: datetime
    until: datetime


def idle_nodes(workspace: Workspace, settings: EnvironmentSpec, previous: Provisioning, now: datetime) -> Idle | None:
    """Until when the nodes of the Workspace, which needs none, stay; None if not at all.

    `previous` is from its status, the only record of since when it needs none: without it, since now.
    """
    seconds = workspace.idle_seconds(settings.node_claims.idle_seconds)
    if not seconds:
        return None
    since = min(parse_time(previous.idle_since) or now, now)
    return Idle(since, since + timedelta(seconds=seconds))

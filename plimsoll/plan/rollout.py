"""Rollout: how the pods of one Workspace are replaced by those of another template (`inference.rollout`)."""

from collections.abc import Mapping, Sequence
from typing import Any

from plimsoll.labels import GIVEN_UP, MOVED, SPEC_HASH
from plimsoll.model import Verdict
from plimsoll.model.api import Workspace
from plimsoll.model.cluster import Workload
from plimsoll.plan.owned import PlanBuilder, alive
from plimsoll.plan.view import ClusterView
from plimsoll.plan.workspaces import of_others, spec_hash
from plimsoll.text import counted


class Rollout:
    """The rollout of one accepted Workspace. Without `strategy: Surge` it takes no node more."""

    def __init__(self, view: ClusterView, workspace: Workspace, verdict: Verdict, existing: Sequence[str]) -> None:
        """`existing` are the existing nodes that count for it, with node auto-provisioning."""
        self._view = view
        self._workspace = workspace
        self._verdict = verdict
        self._existing = existing

    def temporary_nodes(self, builder: PlanBuilder) -> int:
        """Nodes that it takes now: while pods of an earlier template serve, until the deadline, which is told."""
        workspace = self._workspace
        if workspace.key not in self._view.rolling:
            return 0
        if not self._view.ownership.rollout_stalled(workspace):
            return workspace.temporary_nodes
        go = ", and the temporary nodes go" if self._view.settings.auto_provisioning else ""
        advice = f"the old pods serve{go}: change the template, or put the old one back"
        builder.warn(workspace.ref, f"the new pods were not Ready within the deadline of the rollout: {advice}")
        return 0

    def held(self, same: Workload | None) -> bool:
        """Whether no pod of a new template starts: no node is free for it, and pods of the old one serve."""
        return same is not None and self._verdict.surge == 0 and bool(self._view.places.serving(self._workspace.ref))

    def given_up(self, same: Workload, manifest: dict[str, Any]) -> str:
        """The hash of the pod template whose rollout is given up; empty if that of the manifest is not.

        What is rolled back may still be told to stall, so it counts with a pod that is not Ready on a node.
        """
        workspace, places = self._workspace, self._view.places
        if not workspace.surge or self._verdict.surge is not None:
            return ""
        template = spec_hash(manifest["spec"]["template"])
        if same.annotations.get(GIVEN_UP) == template:
            return template
        waiting = places.nodes_of(workspace.ref, workspace.replicas) - places.serving(workspace.ref)
        current = same.spec_hash == manifest["metadata"]["annotations"][SPEC_HASH]
        return template if current and same.rolling_out and same.stalled and waiting else ""

    def moved(self, same: Workload | None) -> str:
        """A hash of the NodeClaims from which pods move to existing nodes that are free, or moved last: as part of the
        pod template it starts a rollout, during which the old pods serve. Empty if none ever moved."""
        if same is None:
            return ""
        before, replicas = same.annotations.get(MOVED, ""), self._workspace.replicas
        if not self._workspace.surge or not self._view.settings.auto_provisioning:
            return before
        settled = not same.rolling_out and same.pods == same.ready_replicas == same.replicas == replicas
        busy = self._view.places.nodes_of(self._workspace.ref, replicas)
        left = sorted(
            each.uid for each in alive(self._view.ownership.claims_of(self._workspace)) if each.node_name in busy
        )
        free = [name for name in self._existing if name not in busy]
        return spec_hash({"left": left}) if settled and left and free else before

    def step(self, same: Workload, annotations: Mapping[str, str]) -> str:
        """Why its workload is updated to have these annotations; empty if not for the rollout."""
        if same.annotations.get(MOVED) != annotations.get(MOVED):
            return "its pods move to existing nodes, and those that were created for them go"
        if same.spec_hash != annotations[SPEC_HASH]:
            chosen, claims = self._verdict.alternative, alive(self._view.ownership.claims_of(self._workspace))
            moves = self._workspace.moves_back and of_others(claims, chosen, self._view.types)
            return f"its replicas move to {chosen}, all nodes of which are Ready" if moves and same.replicas else ""
        if same.annotations.get(GIVEN_UP) != annotations.get(GIVEN_UP):
            return "its rollout made no progress until the deadline"
        surge, pace = self._verdict.surge, (same.paused, same.max_surge)
        if surge is None or not (same.rolling_out or same.paused) or pace == (self.held(same), surge):
            return ""
        return f"its rollout has {counted(surge, 'free node')}"

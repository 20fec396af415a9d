"""Which objects the rules read; the others are skipped."""

from typing import Final

from plimsoll.cluster.queues import queue_uses
from plimsoll.labels import GROUP
from plimsoll.policy.context import KAI_GROUP
from plimsoll.policy.fields import Manifest, group_of, is_kind, kind_of
from plimsoll.policy.pod_templates import pod_templates
from plimsoll.policy.rules import CHART_FILE_KIND, CLAIMS_GROUP, NODE_CLASS_GROUP, TRAINER, VALUES_KIND, charts
from plimsoll.policy.workspaces import workspace_of

_CHARTS: Final = {
    ("argoproj.io", "Application"),
    ("helm.toolkit.fluxcd.io", "HelmRelease"),
    ("helm.cattle.io", "HelmChart"),
}
UNNAMED: Final = (CHART_FILE_KIND, VALUES_KIND)
"""Plimsoll's kinds for files that are not Kubernetes objects."""
UNREAD_GROUPS: Final = frozenset({"admissionregistration.k8s.io", "apiextensions.k8s.io", "rbac.authorization.k8s.io"})
"""API groups of which no rule reads an object: none has pods or a queue, and some are large."""


def is_read(manifest: Manifest) -> bool:
    """Whether a rule reads objects of this kind."""
    return group_of(manifest) not in UNREAD_GROUPS and (
        workspace_of(manifest) is not None
        or is_kind(manifest, GROUP, "Environment", "NodeProfile")
        or is_kind(manifest, "", "Node", "Namespace")
        or is_kind(manifest, CLAIMS_GROUP, "ResourceClaim", "ResourceClaimTemplate", "DeviceClass")
        or is_kind(manifest, "karpenter.sh", "NodePool", "NodeClaim")
        or is_kind(manifest, NODE_CLASS_GROUP, "EC2NodeClass")
        or is_kind(manifest, KAI_GROUP, "Queue", "PodGroup")
        or is_kind(manifest, TRAINER, "TrainJob")
        or (group_of(manifest), kind_of(manifest)) in _CHARTS
        or kind_of(manifest) in UNNAMED
        or next(charts(manifest), None) is not None
        or next(pod_templates(manifest), None) is not None
        or next(iter(queue_uses(manifest)), None) is not None
    )

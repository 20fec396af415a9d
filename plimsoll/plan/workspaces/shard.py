"""KAI's node pool of a Workspace: that of its pods, by the label that KAI reads on them."""

from collections.abc import Mapping

from plimsoll.cluster.queues import DEFAULT_SCHEDULER
from plimsoll.model import Reason, Refusal
from plimsoll.model.api import EnvironmentSpec, Workspace
from plimsoll.model.meta import ANYWHERE, Placement, dig
from plimsoll.plan.view import ClusterView
from plimsoll.serving import settings_of


def in_shard(workspace: Workspace, view: ClusterView) -> Placement:
    """The nodes that the scheduler of its pods sees, if that is KAI's."""
    pool = node_pool_of(workspace, view.settings)
    if pool is None or not (pool or view.sharded):
        return ANYWHERE
    return ANYWHERE.on(view.settings.node_pool_label.requirement(pool))


def node_pool_of(workspace: Workspace, environment: EnvironmentSpec) -> str | None:
    """The node pool; None: KAI does not schedule its pods."""
    scheduler = environment.queue_scheduler
    by_queues = workspace.spec.queue or dig(workspace.template or {}, "spec.schedulerName") == scheduler
    if not by_queues or scheduler == DEFAULT_SCHEDULER:
        return None
    return environment.node_pool_label.of(_labels(workspace, environment))


def shards_of_queues(view: ClusterView) -> Mapping[str, str]:
    """KAI's node pool of each queue."""
    queues, label = view.observed.queues, view.settings.node_pool_label
    return view.known.result("shards", (queues, label), lambda: {each.name: label.of(each.labels) for each in queues})


def queue_of_other_shard(
    workspace: Workspace, environment: EnvironmentSpec, shards: Mapping[str, str]
) -> Refusal | None:
    """A refusal of a Workspace whose queue and pods no scheduler of KAI sees both; `shards` are those of queues."""
    pool, label = node_pool_of(workspace, environment), environment.node_pool_label
    queue = workspace.spec.queue or label.queue_in(_labels(workspace, environment))
    if pool is None or shards.get(queue, pool) == pool:
        return None
    field = "inference.template.metadata.labels" if workspace.template else "inference.pods.labels"
    return Refusal(
        Reason.NOT_ALLOWED,
        f"Queue {queue} has {label.shown(shards[queue])}, and its pods {label.shown(pool)}: no scheduler of KAI "
        f"sees both; give both the same label ({field}), or use another queue",
    )


def _labels(workspace: Workspace, environment: EnvironmentSpec) -> Mapping[str, str]:
    """Of its pods: those of its template, or of the settings of a preset's pods."""
    inference = workspace.spec.inference
    if workspace.template is not None or inference is None:
        return workspace.pod_labels
    return settings_of(inference, environment).labels

"""The objects of an environment for Kubeflow Trainer: runtimes, and admission of TrainJobs by their queue."""

from collections.abc import Mapping
from functools import cache
from typing import Any, cast

import pulumi

from plimsoll.components import (
    ClusterTrainingRuntime,
    ClusterTrainingRuntimeArgs,
    QueueAdmission,
    TrainingRuntime,
    TrainingRuntimeArgs,
)
from plimsoll.stacks.objects import arguments, options
from plimsoll.stacks.settings import ClusterTrainingRuntimeSettings, Settings
from plimsoll.stacks.trainer import find_kai_scheduler_field


def declare_runtimes(
    settings: Settings,
    values: Mapping[str, Any],
    queues: Mapping[str, pulumi.Resource],
    namespaces: Mapping[str, pulumi.Resource],
) -> list[pulumi.Resource]:
    """Declares each runtime after its queue and its namespace. Raises PlimsollError if the cluster must be read to find
    out whether its Trainer has the field for KAI, and does not answer."""
    has_field = cache(find_kai_scheduler_field)
    made: list[pulumi.Resource] = []

    def args(runtime: ClusterTrainingRuntimeSettings, declared: Mapping[str, Any]) -> dict[str, Any]:
        around: dict[str, Any] = {"scheduler_name": settings.environment.queue_scheduler}
        if runtime.queue is not None and runtime.kai_scheduler_field is None:
            around["kai_scheduler_field"] = has_field()
        return {**around, **declared}

    for key, runtime in settings.training_runtimes.items():
        needs = (queues.get(runtime.queue or ""), namespaces.get(runtime.namespace))
        declared = args(runtime, arguments(values["trainingRuntimes"][key]))
        made.append(
            TrainingRuntime(key, cast("TrainingRuntimeArgs", declared), options(runtime, key, *needs, namespaced=True))
        )
    for key, shared in settings.cluster_training_runtimes.items():
        declared = args(shared, arguments(values["clusterTrainingRuntimes"][key]))
        queue = queues.get(shared.queue or "")
        made.append(
            ClusterTrainingRuntime(key, cast("ClusterTrainingRuntimeArgs", declared), options(shared, key, queue))
        )
    return made


def declare_admission(settings: Settings) -> list[pulumi.Resource]:
    """Declares the policy on TrainJobs, if the environment has queues or runtimes and its setting is not `off`."""
    action = settings.environment.admission
    leaves = settings.leaf_queues()
    if action == "off" or not (leaves or settings.training_runtimes or settings.cluster_training_runtimes):
        return []
    return [
        QueueAdmission(
            "queues", {"leaves": [*sorted(leaves)], "parents": [*sorted(settings.parent_queues())], "action": action}
        )
    ]

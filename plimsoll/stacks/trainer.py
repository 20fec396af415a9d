"""Detects which fields the cluster's Kubeflow Trainer supports."""

from collections.abc import Mapping
from typing import Any, Final

from plimsoll.errors import PlimsollError
from plimsoll.model.meta import dig
from plimsoll.stacks.stack_connection import stack_cluster

_DEFINITION: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/trainingruntimes.trainer.kubeflow.org"


def find_kai_scheduler_field() -> bool:
    """Whether the cluster's Trainer has the field `podGroupPolicy.kaiScheduler`. Raises PlimsollError if the cluster
    does not answer, or has no Trainer."""
    from plimsoll.kube import RequestError

    connection = stack_cluster()()
    try:
        definition = connection.request("GET", _DEFINITION)
    except RequestError as error:
        if error.code != 404:
            raise
        raise PlimsollError(
            "the cluster has no Kubeflow Trainer: the CRD of TrainingRuntime does not exist",
            "install Trainer first, or set kaiSchedulerField on each training runtime to preview without it",
        ) from None
    finally:
        connection.close()
    return has_kai_scheduler_field(definition)


def has_kai_scheduler_field(definition: Mapping[str, Any]) -> bool:
    """Whether the CustomResourceDefinition of TrainingRuntime has the field."""
    path = "schema.openAPIV3Schema.properties.spec.properties.podGroupPolicy.properties.kaiScheduler"
    versions = dig(definition, "spec.versions") or ()
    return any(version.get("name") == "v1alpha1" and dig(version, path) is not None for version in versions)

"""`plimsoll bind` in the cluster: a Deployment of the share binder."""

from typing import Any, Final

import pulumi

from plimsoll.components.access import NAMESPACE
from plimsoll.components.declaring import Component, metadata
from plimsoll.components.restricted import container_security, pod_security
from plimsoll.components.specs import ShareBinderSpec
from plimsoll.kubernetes_sdk import k8s
from plimsoll.labels import HOSTNAME

BINDER: Final = "plimsoll-binder"
"""Name of the Deployment, the service account and its role."""
_LABELS: Final = {"app.kubernetes.io/name": "plimsoll", "app.kubernetes.io/component": "binder"}
_RESOURCES: Final = {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}}

Object = dict[str, Any]


def declare_binder(parent: Component, spec: ShareBinderSpec, *after: pulumi.Resource) -> None:
    """Declares the Deployment as a child of the ShareBinder, with its PodDisruptionBudget and a NetworkPolicy that
    admits no connections: it listens on no port. One pod is active, the others are standbys."""
    # The update does not wait for the pods, as not for those of the controller.
    k8s.apps.v1.Deployment(
        parent.named(BINDER),
        metadata=metadata(BINDER, NAMESPACE, _LABELS, skip_await=True),
        spec=_deployment_spec(spec),
        opts=parent.child(*after),
    )
    k8s.policy.v1.PodDisruptionBudget(
        parent.named(BINDER),
        metadata=metadata(BINDER, NAMESPACE, _LABELS),
        spec={"maxUnavailable": 1, "selector": {"matchLabels": _LABELS}},
        opts=parent.child(),
    )
    k8s.networking.v1.NetworkPolicy(
        parent.named(BINDER),
        metadata=metadata(BINDER, NAMESPACE, _LABELS),
        spec={"podSelector": {"matchLabels": _LABELS}, "policyTypes": ["Ingress"]},
        opts=parent.child(),
    )


def _deployment_spec(spec: ShareBinderSpec) -> Object:
    """The pods fit Pod Security's level restricted."""
    container = {
        "name": "binder",
        "image": spec.image,
        "args": [
            "bind",
            f"--image={spec.image}",
            f"--scheduler-name={spec.scheduler_name}",
            f"--reservation-namespace={spec.namespace}",
            f"--reservation-service-account={spec.service_account}",
            *(f"--placement={pool}={strategy}" for pool, strategy in sorted(spec.placement.items())),
        ],
        "resources": _RESOURCES,
        "securityContext": container_security(),
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    pod = {
        "serviceAccountName": BINDER,
        "securityContext": pod_security(),
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": HOSTNAME,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": _LABELS},
            }
        ],
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}],
    }
    return {
        "replicas": spec.replicas,
        "selector": {"matchLabels": _LABELS},
        "template": {"metadata": {"labels": _LABELS}, "spec": pod},
    }

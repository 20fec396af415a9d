"""`plimsoll ui` in the cluster: a Deployment with an account that only reads, and a Service for a proxy."""

from collections.abc import Mapping
from typing import Any, Final

import pulumi

from plimsoll.components.access import NAMESPACE, UI, UI_IN_ITS_NAMESPACE
from plimsoll.components.declaring import Component, metadata, object_of, valid
from plimsoll.components.granting import grant
from plimsoll.components.restricted import container_security, pod_security
from plimsoll.components.specs import ControllerSpec, NetworkPeer, UiSpec
from plimsoll.kubernetes_sdk import k8s

UI_NAME: Final = "plimsoll-ui"
"""Name of the Deployment, the Service, the service account and its role."""
_LABELS: Final = {"app.kubernetes.io/name": "plimsoll", "app.kubernetes.io/component": "ui"}
_PORT: Final = 8765
_SERVICE_PORT: Final = 80
_HOME: Final = "/var/lib/plimsoll"

Object = dict[str, Any]


def declare_ui(parent: Component, name: str, fields: Mapping[str, Any]) -> None:
    """Declares the pages as children of the Controller `name`, by its arguments. Raises InvalidArgumentError."""

    def of(convert: Any) -> pulumi.Input[Object]:
        def made(known: Mapping[str, Any]) -> Object:
            spec = valid(ControllerSpec, "Controller", name, known)
            assert spec.ui is not None
            found: Object = convert(spec, spec.ui)
            return found

        return object_of(fields, made)

    account = k8s.core.v1.ServiceAccount(
        parent.named(UI_NAME),
        metadata=metadata(
            UI_NAME, NAMESPACE, _LABELS, annotations=of(lambda _, ui: {**ui.service_account_annotations})
        ),
        opts=parent.child(),
    )
    bindings = [
        each
        for namespace, rules in ((None, UI), (NAMESPACE, UI_IN_ITS_NAMESPACE))
        for each in grant(
            parent.named(UI_NAME),
            metadata(UI_NAME, namespace, _LABELS),
            rules,
            (UI_NAME, NAMESPACE),
            parent.child,
            account_after=[account],
        )[1:]
    ]
    k8s.apps.v1.Deployment(
        parent.named(UI_NAME),
        metadata=metadata(UI_NAME, NAMESPACE, _LABELS, skip_await=True),
        spec=of(_deployment_spec),
        opts=parent.child(*bindings),
    )
    # The update does not wait for it: it has no endpoints until its pods run.
    k8s.core.v1.Service(
        parent.named(UI_NAME),
        metadata=metadata(UI_NAME, NAMESPACE, _LABELS, skip_await=True),
        spec={
            "selector": _LABELS,
            "ports": [{"name": "http", "port": _SERVICE_PORT, "targetPort": "http"}],
            # A page and its stream of changes come from the same replica.
            "sessionAffinity": "ClientIP",
        },
        opts=parent.child(),
    )
    if parent.given("network_policy", True):
        k8s.networking.v1.NetworkPolicy(
            parent.named(UI_NAME),
            metadata=metadata(UI_NAME, NAMESPACE, _LABELS),
            spec=of(_network_policy_spec),
            opts=parent.child(),
        )


def _deployment_spec(spec: ControllerSpec, ui: UiSpec) -> Object:
    """The pods fit Pod Security's level restricted."""
    pod: Object = {
        "serviceAccountName": UI_NAME,
        "securityContext": pod_security(),
        "containers": [_container(spec, ui)],
        "volumes": [{"name": name, "emptyDir": {"sizeLimit": "64Mi"}} for name in ("home", "tmp")],
        **spec.scheduling,
    }
    return {
        "replicas": ui.replicas,
        "selector": {"matchLabels": _LABELS},
        "template": {"metadata": {"labels": _LABELS}, "spec": pod},
    }


def _container(spec: ControllerSpec, ui: UiSpec) -> Object:
    def probe(period: int, failures: int) -> Object:
        get = {"path": "/healthz", "port": "http"}
        return {"httpGet": get, "periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": failures}

    return {
        "name": "ui",
        "image": spec.image,
        "args": ["ui", "--host", "0.0.0.0", "--port", str(_PORT), "--no-open"],
        "env": [{"name": name, "value": value} for name, value in ui.env.items()],
        "ports": [{"name": "http", "containerPort": _PORT}],
        # It answers when its watches are synced.
        "startupProbe": probe(2, 60),
        "livenessProbe": probe(20, 3),
        "readinessProbe": probe(5, 2),
        "resources": ui.resources.requirements,
        "securityContext": container_security(),
        "volumeMounts": [{"name": "home", "mountPath": _HOME}, {"name": "tmp", "mountPath": "/tmp"}],
    }


def _network_policy_spec(spec: ControllerSpec, ui: UiSpec) -> Object:
    """Only the proxy reaches the pages, which have no login; they reach DNS and the given ports."""
    return {
        "podSelector": {"matchLabels": _LABELS},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": NetworkPeer.ingress(ui.proxy, _PORT),
        "egress": spec.egress,
    }

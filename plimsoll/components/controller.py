"""Controller: `plimsoll run` as a Deployment, with its PodDisruptionBudget, NetworkPolicy and pages."""

from collections.abc import Mapping
from typing import Any, Final

import pulumi

from plimsoll.components.access import CONTROLLER_NAME, NAMESPACE, SERVICE_ACCOUNT
from plimsoll.components.args import ControllerArgs
from plimsoll.components.declaring import Component, checked, known, metadata, name_of, namespace_of
from plimsoll.components.restricted import container_security, pod_security
from plimsoll.components.specs import ControllerSpec, NetworkPeer
from plimsoll.components.ui import declare_ui
from plimsoll.kubernetes_sdk import k8s
from plimsoll.labels import HOSTNAME

LABELS: Final = {"app.kubernetes.io/name": "plimsoll", "app.kubernetes.io/component": "controller"}
_HOME: Final = "/var/lib/plimsoll"
_SECRET: Final = "/var/run/plimsoll"
_STATE: Final = f"{_HOME}/state"

Object = dict[str, Any]


class Controller(Component):
    """The controller in the namespace plimsoll-system: one pod is active, the others are warm standbys.

    The Foundation declares its namespace and its service account. Raises InvalidArgumentError if an argument is
    invalid.
    """

    deployment_name: pulumi.Output[str]
    """Name of the Deployment."""
    namespace: pulumi.Output[str]
    """Namespace of the Deployment."""

    def __init__(self, name: str, args: ControllerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Controller", name, args, opts)
        known("Controller", name, args, "network_policy", "passphrase", "passphrase_store", "ui")
        fields = self._args
        # The update does not wait for its pods: their Secret can only be created after the namespace.
        self.deployment = k8s.apps.v1.Deployment(
            self.named(CONTROLLER_NAME),
            metadata=metadata(CONTROLLER_NAME, NAMESPACE, LABELS, skip_await=True),
            spec=checked(ControllerSpec, "Controller", name, fields, deployment_spec),
            opts=self.child(),
        )
        self.budget = k8s.policy.v1.PodDisruptionBudget(
            self.named(CONTROLLER_NAME),
            metadata=metadata(CONTROLLER_NAME, NAMESPACE, LABELS),
            spec={"maxUnavailable": 1, "selector": {"matchLabels": LABELS}},
            opts=self.child(),
        )
        if self.given("network_policy", True):
            self.network_policy = k8s.networking.v1.NetworkPolicy(
                self.named(CONTROLLER_NAME),
                metadata=metadata(CONTROLLER_NAME, NAMESPACE, LABELS),
                spec=checked(ControllerSpec, "Controller", name, fields, network_policy_spec),
                opts=self.child(),
            )
        if self.given("ui") is not None:
            declare_ui(self, name, fields)
        self.deployment_name = name_of(self.deployment)
        self.namespace = namespace_of(self.deployment)
        self.register_outputs({"deploymentName": self.deployment_name, "namespace": self.namespace})


def deployment_spec(spec: ControllerSpec) -> Object:
    """The spec of its Deployment; the pods fit Pod Security's level restricted."""
    pod: Object = {
        "serviceAccountName": SERVICE_ACCOUNT,
        "terminationGracePeriodSeconds": spec.termination_grace_period_seconds,
        "securityContext": pod_security(),
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": key,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": LABELS},
            }
            for key in (HOSTNAME, "topology.kubernetes.io/zone")
        ],
        "containers": [_container(spec)],
        "volumes": [volume for volume, _ in _volumes(spec)],
        **({"priorityClassName": spec.priority_class_name} if spec.priority_class_name else {}),
        **spec.scheduling,
    }
    return {
        "replicas": spec.replicas,
        "selector": {"matchLabels": LABELS},
        "strategy": _strategy(spec),
        "template": {
            "metadata": {
                "labels": {**spec.pod_labels, **LABELS},
                "annotations": {
                    "prometheus.io/scrape": "true",
                    "prometheus.io/port": str(spec.metrics_port),
                    "prometheus.io/path": "/metrics",
                },
            },
            "spec": pod,
        },
    }


def _strategy(spec: ControllerSpec) -> Object:
    if spec.state_claim and spec.replicas == 1:  # a second pod could not mount a ReadWriteOnce volume
        return {"type": "Recreate"}
    # A new pod is a standby before an old one is deleted.
    return {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}


def network_policy_spec(spec: ControllerSpec) -> Object:
    """Only the scraper reaches the metrics, and only the kubelet, which no policy stops, the probes.

    The pods may connect to DNS and the given ports.
    """
    return {
        "podSelector": {"matchLabels": LABELS},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": NetworkPeer.ingress(spec.scraper, spec.metrics_port),
        "egress": spec.egress,
    }


def _container(spec: ControllerSpec) -> Object:
    def probe(path: str, period: int, failures: int) -> Object:
        get = {"path": path, "port": "probes"}
        return {"httpGet": get, "periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": failures}

    return {
        "name": "controller",
        "image": spec.image,
        "args": ["run"],
        "env": [{"name": name, "value": value} for name, value in _environment(spec).items()],
        "ports": [
            {"name": "metrics", "containerPort": spec.metrics_port},
            {"name": "probes", "containerPort": spec.health_probe_port},
        ],
        "startupProbe": probe("/healthz", 2, 60),
        "livenessProbe": probe("/healthz", 20, 3),
        "readinessProbe": probe("/readyz", 5, 2),
        "resources": spec.resources.requirements,
        "securityContext": container_security(),
        "volumeMounts": [mount for _, mount in _volumes(spec)],
    }


def _environment(spec: ControllerSpec) -> Mapping[str, str]:
    file = spec.passphrase.key if spec.passphrase else spec.passphrase_store.file if spec.passphrase_store else ""
    return {
        "PLIMSOLL_HEALTH_PROBE_PORT": str(spec.health_probe_port),
        "PLIMSOLL_METRICS_HOST": "0.0.0.0",
        "PLIMSOLL_METRICS_PORT": str(spec.metrics_port),
        "PLIMSOLL_SHARDS": str(spec.shards),
        "PLIMSOLL_PRE_STARTED": str(spec.pre_started),
        "PLIMSOLL_SECRETS_PROVIDER": spec.secrets_provider,
        "PLIMSOLL_LEASE_DURATION": f"{spec.lease_duration:g}",
        "PLIMSOLL_LEASE_RENEW_DEADLINE": f"{spec.lease_renew_deadline:g}",
        "PLIMSOLL_LEASE_RETRY_PERIOD": f"{spec.lease_retry_period:g}",
        "PULUMI_BACKEND_URL": spec.backend or f"file://{_STATE}",
        **({"PULUMI_CONFIG_PASSPHRASE_FILE": f"{_SECRET}/{file}"} if file else {}),
        **spec.env,
    }


def _volumes(spec: ControllerSpec) -> list[tuple[Object, Object]]:
    """Each volume with its mount. The rest of the container's file system is read-only."""
    found: list[tuple[Object, Object]] = [
        ({"name": "work", "emptyDir": {"sizeLimit": "2Gi"}}, {"name": "work", "mountPath": _HOME}),
        ({"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "tmp", "mountPath": "/tmp"}),
    ]
    if spec.state_claim:
        claim = {"name": "state", "persistentVolumeClaim": {"claimName": spec.state_claim}}
        found.append((claim, {"name": "state", "mountPath": _STATE}))
    mount = {"name": "passphrase", "mountPath": _SECRET, "readOnly": True}
    if spec.passphrase is not None:
        items = [{"key": spec.passphrase.key, "path": spec.passphrase.key}]
        secret = {"secretName": spec.passphrase.name, "defaultMode": 0o440, "items": items}
        found.append(({"name": "passphrase", "secret": secret}, mount))
    if spec.passphrase_store is not None:
        attributes = {"secretProviderClass": spec.passphrase_store.secret_provider_class}
        csi = {"driver": "secrets-store.csi.k8s.io", "readOnly": True, "volumeAttributes": attributes}
        found.append(({"name": "passphrase", "csi": csi}, mount))
    return found

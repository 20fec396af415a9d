"""The controller in a cluster: its image, its state and its pods."""

from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from plimsoll.components.specs.gpu_discovery import DeclaredToleration
from plimsoll.labels import NAMESPACE_NAME
from plimsoll.model.meta import Declared

SECRETS_PROVIDERS = ("awskms://", "azurekeyvault://", "gcpkms://", "hashivault://")
BACKENDS = ("s3://", "gs://", "azblob://", "https://")
SETTINGS = {
    "PLIMSOLL_HEALTH_PROBE_PORT": "healthProbePort",
    "PLIMSOLL_METRICS_HOST": "metricsPort",
    "PLIMSOLL_METRICS_PORT": "metricsPort",
    "PLIMSOLL_SHARDS": "shards",
    "PLIMSOLL_PRE_STARTED": "preStarted",
    "PLIMSOLL_SECRETS_PROVIDER": "secretsProvider",
    "PLIMSOLL_LEASE_DURATION": "leaseDuration",
    "PLIMSOLL_LEASE_RENEW_DEADLINE": "leaseRenewDeadline",
    "PLIMSOLL_LEASE_RETRY_PERIOD": "leaseRetryPeriod",
    "PULUMI_BACKEND_URL": "backend",
    "PULUMI_CONFIG_PASSPHRASE_FILE": "passphrase",
}
"""Environment variables of the container that fields of the spec set, with these fields."""

Port = Annotated[int, Field(ge=1, le=65535)]


class SecretKey(Declared):
    """A key of a Secret in the controller's namespace."""

    name: str = Field(min_length=1)
    key: str = "passphrase"


class SecretStore(Declared):
    """A SecretProviderClass of the Secrets Store CSI driver, and the file that it mounts."""

    secret_provider_class: str = Field(min_length=1)
    file: str = "passphrase"


class ControllerResources(Declared):
    """Requests and limits of a container, as quantities."""

    cpu: str = "250m"
    memory: str = "640Mi"
    """Measured: 200 MiB at 5,000 nodes, and 220 MB for each pre-started update, with its plugin."""
    memory_limit: str = "1536Mi"
    """Enough for four concurrent updates, as for 500 objects that are created at once."""

    @property
    def requirements(self) -> dict[str, Any]:
        """`resources` of the container."""
        return {"requests": {"cpu": self.cpu, "memory": self.memory}, "limits": {"memory": self.memory_limit}}


class NetworkPeer(Declared):
    """The pods that a NetworkPolicy admits."""

    namespace: str = Field(min_length=1)
    pod_labels: dict[str, str] = Field(default_factory=dict)
    """Absent: all pods of the namespace."""

    @property
    def peer(self) -> dict[str, Any]:
        """An entry of `from` in a NetworkPolicy."""
        pods = {"podSelector": {"matchLabels": self.pod_labels}} if self.pod_labels else {}
        return {"namespaceSelector": {"matchLabels": {NAMESPACE_NAME: self.namespace}}, **pods}

    @staticmethod
    def ingress(admitted: "NetworkPeer | None", port: int) -> list[dict[str, Any]]:
        """Ingress rules that admit these pods to one port; none, if there are no such pods."""
        return [{"from": [admitted.peer], "ports": [{"protocol": "TCP", "port": port}]}] if admitted else []


class UiResources(ControllerResources):
    """Requests and limits of the container of the pages."""

    cpu: str = "100m"
    memory: str = "512Mi"


class UiSpec(Declared):
    """The pages of `plimsoll ui` as a Deployment."""

    replicas: int = Field(default=1, ge=1, le=5)
    proxy: NetworkPeer | None = None
    """The proxy, which authenticates people and forwards their requests. Absent: the NetworkPolicy admits no
    connections."""
    resources: UiResources = UiResources()
    env: dict[str, str] = Field(default_factory=dict)
    service_account_annotations: dict[str, str] = Field(default_factory=dict)


class ControllerSpec(Declared):
    """The controller's Deployment, its NetworkPolicy, and the pages."""

    image: str = Field(min_length=1)
    replicas: int = Field(default=2, ge=1, le=5)
    """One pod is active, the others are warm standbys."""
    backend: str = ""
    """URL of the Pulumi state: s3://, gs://, azblob://, or https:// of Pulumi's service. Absent: on the volume of
    `state_claim`."""
    state_claim: str = ""
    """PersistentVolumeClaim of the state; ReadWriteMany if there is more than one replica. A single replica ends before
    the next one starts, because another node could not mount its volume."""
    passphrase: SecretKey | None = None
    passphrase_store: SecretStore | None = None
    secrets_provider: str = "passphrase"
    """`passphrase`, or the URL of a key; then no passphrase is set."""
    shards: int = Field(default=4, ge=1, le=64)
    pre_started: int = Field(default=1, ge=0, le=64)
    lease_duration: float = Field(default=15.0, gt=0, le=86_400)
    lease_renew_deadline: float = Field(default=10.0, gt=0)
    lease_retry_period: float = Field(default=5.0, gt=0)
    env: dict[str, str] = Field(default_factory=dict)
    """Further environment variables, such as AWS_REGION; not those that other fields set."""
    pod_labels: dict[str, str] = Field(default_factory=dict)
    """Labels of the pods, such as `azure.workload.identity/use: "true"`."""
    resources: ControllerResources = ControllerResources()
    priority_class_name: str = ""
    node_selector: dict[str, str] = Field(default_factory=dict)
    tolerations: tuple[DeclaredToleration, ...] = ()
    termination_grace_period_seconds: int = Field(default=90, ge=30)
    """Time for a running update to end the operations that it has begun."""
    network_policy: bool = Field(default=True, strict=True)
    egress_ports: tuple[Port, ...] = (443, 6443)
    """TCP ports of the apiserver, the backend and the cloud."""
    metrics_port: int = Field(default=9464, ge=1024, le=65535)
    health_probe_port: int = Field(default=8081, ge=1024, le=65535)
    """Of the probes, for which the NetworkPolicy admits nobody: the kubelet is on the node of the pod."""
    scraper: NetworkPeer | None = None
    """The pods that scrape the metrics. Absent: the NetworkPolicy admits no connections."""
    ui: UiSpec | None = None
    """The pages of `plimsoll ui` as a second Deployment, with a read-only account. Absent: none."""

    @property
    def scheduling(self) -> dict[str, Any]:
        """Fields for scheduling, of the controller's pods and of those of the pages."""
        tolerations = [each.complete_manifest() for each in self.tolerations]
        fields = {"nodeSelector": self.node_selector, "tolerations": tolerations}
        return {name: value for name, value in fields.items() if value}

    @property
    def egress(self) -> list[dict[str, Any]]:
        """Egress rules of both NetworkPolicies: to DNS and to the given ports."""
        dns = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
        return [{"ports": dns}, {"ports": [{"protocol": "TCP", "port": port} for port in self.egress_ports]}]

    @field_validator("secrets_provider")
    @classmethod
    def _is_known(cls, provider: str) -> str:
        if provider != "passphrase" and not provider.startswith(SECRETS_PROVIDERS):
            raise ValueError(f"must be passphrase, or begin with one of {', '.join(SECRETS_PROVIDERS)}")
        return provider

    @field_validator("backend")
    @classmethod
    def _is_reached(cls, backend: str) -> str:
        if backend and not (backend.startswith(BACKENDS) and urlsplit(backend).netloc):
            raise ValueError("must be the URL of a bucket or service, such as s3://states/prod; a volume is stateClaim")
        return backend

    @field_validator("egress_ports")
    @classmethod
    def _are_some(cls, ports: tuple[int, ...]) -> tuple[int, ...]:
        if not ports:
            raise ValueError("must have at least one port: a rule without ports allows all of them")
        return ports

    @field_validator("env")
    @classmethod
    def _is_no_setting(cls, env: dict[str, str]) -> dict[str, str]:
        for name in env:
            if name in SETTINGS:
                raise ValueError(f"{name} is set by the field {SETTINGS[name]}")
        return env

    @model_validator(mode="after")
    def _has_state_and_secrets(self) -> "ControllerSpec":
        if bool(self.backend) == bool(self.state_claim):
            raise ValueError("set either backend or stateClaim: where the Pulumi state is")
        given = [self.passphrase is not None, self.passphrase_store is not None]
        if sum(given) != (1 if self.secrets_provider == "passphrase" else 0):
            raise ValueError(
                "set passphrase or passphraseStore with the secretsProvider passphrase, and neither with a key"
            )
        if not self.lease_retry_period < self.lease_renew_deadline < self.lease_duration:
            raise ValueError("leaseRetryPeriod < leaseRenewDeadline < leaseDuration must hold")
        if self.metrics_port == self.health_probe_port:
            raise ValueError("metricsPort and healthProbePort must differ: each has a server of its own")
        return self

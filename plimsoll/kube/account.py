"""The account that a connection uses, for messages."""

from dataclasses import dataclass

_POD = "the pod's service account"


@dataclass(frozen=True)
class Account:
    """The user of a kubeconfig's context, or the service account of a pod."""

    name: str = "the kubeconfig"
    """Such as `context 'prod'`."""
    user: str = ""
    """As the kubeconfig names it."""
    plugin: str = ""
    """The command of its exec plugin, as the kubeconfig has it; empty where it has none."""

    @classmethod
    def of_pod(cls) -> "Account":
        return cls(_POD)

    @property
    def renewal(self) -> str:
        """What to do about credentials that the apiserver does not accept."""
        if self.plugin:
            return f"log in again, so that the exec plugin {self.plugin!r} returns valid credentials"
        if self.name == _POD:
            return "check that the pod mounts a token of this cluster and for this apiserver's audience"
        return "renew the token or certificate of its user in the kubeconfig"

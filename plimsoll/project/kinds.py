"""Kinds of clusters that a project may be written for, and what declares them."""

from enum import StrEnum


class Language(StrEnum):
    """What declares a cluster's environment."""

    YAML = "yaml"
    """The settings of its stack."""
    PYTHON = "python"
    """The program, with typed arguments."""


class ClusterKind(StrEnum):
    """Where the GPU nodes of a cluster come from."""

    BYO = "byo"
    AWS = "aws"
    AZURE = "azure"
    GCP = "gcp"
    SANDBOX = "sandbox"

    @property
    def summary(self) -> str:
        return _SUMMARIES[self]

    @property
    def provisions(self) -> bool:
        """Whether an autoscaler creates nodes."""
        return self is not ClusterKind.BYO

    @property
    def node_class(self) -> str:
        """The resource of Karpenter's NodeClasses, with its group; empty where the project needs none of a cloud."""
        return _NODE_CLASSES.get(self, "")

    @property
    def extras(self) -> tuple[str, ...]:
        """The extras of the package that the project's program and controller need, and where it runs the cluster."""
        more = (self.value,) if self in (ClusterKind.AWS, ClusterKind.SANDBOX) else ()
        return tuple(sorted(("controller", *more)))


_SUMMARIES = {
    ClusterKind.BYO: "existing GPU nodes (BYO)",
    ClusterKind.AWS: "Karpenter on AWS (EKS)",
    ClusterKind.AZURE: "Karpenter on Azure (AKS)",
    ClusterKind.GCP: "Karpenter on Google Cloud (GKE)",
    ClusterKind.SANDBOX: "the sandbox of this machine, without real nodes",
}
_NODE_CLASSES = {
    ClusterKind.AWS: "ec2nodeclasses.karpenter.k8s.aws",
    ClusterKind.AZURE: "aksnodeclasses.karpenter.azure.com",
    ClusterKind.GCP: "gcenodeclasses.karpenter.k8s.gcp",
}

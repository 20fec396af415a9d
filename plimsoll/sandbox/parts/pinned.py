"""The parts that a sandbox runs, each pinned as a Go module in tools/."""

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

from plimsoll import home

BinFolder = Literal["bin", "bin-python", "bin-policy"]


@dataclass(frozen=True)
class Program:
    """A binary that Go builds.

    `version_arguments` are arguments that print its version; without them, it is never taken from PATH.
    `any_minor_from` accepts any version of the same major from that minor on; otherwise the minor must be that of the
    pinned version.
    """

    name: str
    package: str
    version_arguments: tuple[str, ...] = ()
    any_minor_from: int | None = None
    folder: BinFolder | None = "bin"


@dataclass(frozen=True)
class ModuleFile:
    """A file or folder that is copied from the part's Go module unchanged."""

    name: str
    source: str
    executable: bool = False
    folder: BinFolder | None = None


@dataclass(frozen=True)
class Part:
    """A Go module with the programs and files that the sandbox uses.

    `build_seconds` is the measured time of a build with an empty build cache on 2 cores; it is the part's weight in the
    progress bar and the estimate.
    """

    name: str
    module: str
    build_seconds: int
    programs: tuple[Program, ...] = ()
    files: tuple[ModuleFile, ...] = ()
    linker_variables: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Go's build tags."""
    pin: str | None = None
    """The folder in tools/ that pins it, if it is not that of its name."""

    @property
    def source(self) -> Path:
        """The folder with the go.mod and go.sum that pin this part."""
        return home.tools() / (self.pin or self.name)

    @cached_property
    def version(self) -> str:
        """The pinned version, such as v1.36.3, read from go.mod."""
        go_mod = (self.source / "go.mod").read_text()
        found = re.search(rf"^\s*(?:require\s+)?{re.escape(self.module)} (v\S+)", go_mod, re.MULTILINE)
        if found is None:
            raise ValueError(f"{self.source / 'go.mod'} does not require {self.module}")
        return found[1]

    @property
    def linker_flags(self) -> str:
        """Flags for `go build -ldflags`; `{version}` and `{number}` stand for v1.2.3 and 1.2.3."""
        values = [f"-X {v.format(version=self.version, number=self.version[1:])}" for v in self.linker_variables]
        return " ".join(["-s -w", *values])

    @property
    def cached(self) -> Path:
        """The folder in the cache; its name changes with anything that changes the build."""
        digest = hashlib.sha256(" ".join([self.linker_flags, *self.tags]).encode())
        for path in sorted(self.source.rglob("*")):
            if path.name in ("go.mod", "go.sum") or path.suffix == ".go":
                digest.update(path.read_bytes())
        return home.cache() / "parts" / f"{self.name}-{self.version}-{digest.hexdigest()[:10]}"


_PULUMI_SDK: Final = "github.com/pulumi/pulumi/sdk/v3"
_KUBERNETES: Final = "k8s.io/kubernetes/cmd"
_TRAINER: Final = "github.com/kubeflow/trainer/v2"
_TRAINER_CRDS: Final = tuple(
    f"trainer.kubeflow.org_{kind}" for kind in ("trainjobs", "trainingruntimes", "clustertrainingruntimes")
)

_KAI: Final = "github.com/NVIDIA/KAI-scheduler"
_KAI_CHART: Final = "deployments/kai-scheduler"
_KAI_ROLES: Final = (
    "admission", "binder", "nodescaleadjuster", "podgroupcontroller", "podgrouper", "queuecontroller", "scheduler",
)  # fmt: skip

PARTS: Final = (
    Part(
        "kubernetes",
        "k8s.io/kubernetes",
        build_seconds=208,
        programs=(
            Program("kube-apiserver", f"{_KUBERNETES}/kube-apiserver", ("--version",)),
            Program("kube-controller-manager", f"{_KUBERNETES}/kube-controller-manager", ("--version",)),
            Program("kube-scheduler", f"{_KUBERNETES}/kube-scheduler", ("--version",)),
            Program("kubectl", f"{_KUBERNETES}/kubectl", ("version", "--client"), any_minor_from=30),
        ),
        linker_variables=(
            "k8s.io/component-base/version.gitVersion={version}",
            "k8s.io/client-go/pkg/version.gitVersion={version}",
        ),
    ),
    Part(
        "pulumi",
        "github.com/pulumi/pulumi/pkg/v3",
        build_seconds=143,
        programs=(Program("pulumi", "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi", ("version",)),),
        linker_variables=(f"{_PULUMI_SDK}/go/common/version.Version={{number}}",),
    ),
    Part(
        "pulumi-kubernetes",
        "github.com/pulumi/pulumi-kubernetes/provider/v4",
        build_seconds=125,
        programs=(Program("pulumi-resource-kubernetes", "plimsoll.dev/tools/pulumi-kubernetes", folder=None),),
        files=(ModuleFile("schema.json", "cmd/pulumi-resource-kubernetes/schema.json"),),
        linker_variables=("main.version=4.25.0",),
    ),
    Part(
        "kai-scheduler",
        _KAI,
        build_seconds=119,
        programs=(Program("kai", "plimsoll.dev/tools/kai"),),
        files=(
            ModuleFile("objects/priority-classes", f"{_KAI_CHART}/templates/priorityclasses"),
            *(ModuleFile(f"objects/{name}.yaml", f"{_KAI_CHART}/templates/rbac/{name}.yaml") for name in _KAI_ROLES),
        ),
        pin="kai",
    ),
    Part(
        "jobset",
        "sigs.k8s.io/jobset",
        build_seconds=98,
        programs=(Program("jobset-controller", "sigs.k8s.io/jobset"),),
        files=(
            ModuleFile("crds", "config/components/crd/bases"),
            ModuleFile("webhooks.yaml", "config/components/webhook/manifests.yaml"),
        ),
        linker_variables=("sigs.k8s.io/jobset/pkg/version.GitVersion={version}",),
    ),
    Part(
        "prometheus",
        "github.com/prometheus/prometheus",
        build_seconds=90,
        programs=(Program("promtool", "github.com/prometheus/prometheus/cmd/promtool"),),
        tags=("remove_all_sd",),
    ),
    Part(
        "karpenter",
        "sigs.k8s.io/karpenter",
        build_seconds=70,
        programs=(Program("karpenter", "sigs.k8s.io/karpenter/kwok"),),
        files=(
            ModuleFile("crds/karpenter", "pkg/apis/crds"),
            ModuleFile("crds/kwok", "kwok/apis/crds"),
        ),
    ),
    Part(
        "lws",
        "sigs.k8s.io/lws",
        build_seconds=60,
        programs=(Program("lws-controller", "sigs.k8s.io/lws/cmd"),),
        files=(
            ModuleFile("crds", "config/crd/bases"),
            ModuleFile("webhooks.yaml", "config/webhook/manifests.yaml"),
        ),
        linker_variables=("sigs.k8s.io/lws/pkg/version.GitVersion={version}",),
    ),
    Part(
        "trainer",
        _TRAINER,
        build_seconds=45,
        programs=(Program("trainer-controller-manager", f"{_TRAINER}/cmd/trainer-controller-manager"),),
        files=(
            *(ModuleFile(f"crds/{name}.yaml", f"manifests/base/crds/{name}.yaml") for name in _TRAINER_CRDS),
            ModuleFile("webhooks.yaml", "manifests/base/webhook/manifests.yaml"),
        ),
    ),
    Part(
        "kwok",
        "sigs.k8s.io/kwok",
        build_seconds=44,
        programs=(Program("kwok", "sigs.k8s.io/kwok/cmd/kwok", ("--version",)),),
    ),
    Part(
        "etcd",
        "go.etcd.io/etcd/server/v3",
        build_seconds=31,
        programs=(Program("etcd", "go.etcd.io/etcd/server/v3", ("--version",)),),
    ),
    Part(
        "pulumi-language-python",
        _PULUMI_SDK,
        build_seconds=13,
        programs=(
            Program(
                "pulumi-language-python",
                f"{_PULUMI_SDK}/python/cmd/pulumi-language-python",
                folder="bin-python",
            ),
        ),
        files=(
            ModuleFile(
                "pulumi-language-python-exec",
                "python/cmd/pulumi-language-python-exec",
                executable=True,
                folder="bin-python",
            ),
            ModuleFile(
                "policy/pulumi-analyzer-policy-python",
                "python/dist/pulumi-analyzer-policy-python",
                executable=True,
                folder="bin-policy",
            ),
        ),
    ),
    Part(
        "pulumi-language-yaml",
        "github.com/pulumi/pulumi-yaml",
        build_seconds=60,
        programs=(
            Program("pulumi-language-yaml", "github.com/pulumi/pulumi-yaml/cmd/pulumi-language-yaml", folder="bin"),
        ),
    ),
    Part(
        "pulumi-language-nodejs",
        _PULUMI_SDK,
        build_seconds=20,
        programs=(Program("pulumi-language-nodejs", f"{_PULUMI_SDK}/nodejs/cmd/pulumi-language-nodejs"),),
    ),
    Part(
        "pulumi-gen-sdk",
        "github.com/pulumi/pulumi/pkg/v3",
        build_seconds=15,
        programs=(Program("pulumi-gen-sdk", "plimsoll.dev/tools/pulumi-gen-sdk"),),
    ),
    Part(
        "kai",
        _KAI,
        build_seconds=5,
        files=(ModuleFile("crds", f"{_KAI_CHART}/crds"),),
    ),
    Part(
        "cluster-autoscaler",
        "k8s.io/autoscaler/cluster-autoscaler/apis",
        build_seconds=3,
        files=(ModuleFile("crds", "config/crd"),),
    ),
    Part(
        "argo-cd",
        "github.com/argoproj/argo-cd/v3",
        build_seconds=6,
        files=(
            ModuleFile("crds/application.yaml", "manifests/crds/application-crd.yaml"),
            ModuleFile("crds/appproject.yaml", "manifests/crds/appproject-crd.yaml"),
        ),
    ),
    Part(
        "flux-kustomize-controller",
        "github.com/fluxcd/kustomize-controller",
        build_seconds=2,
        files=(ModuleFile("crds", "config/crd/bases"),),
    ),
    Part(
        "flux-source-controller",
        "github.com/fluxcd/source-controller",
        build_seconds=2,
        files=(ModuleFile("crds", "config/crd/bases"),),
    ),
)
"""Longest build first, so that concurrent builds end at about the same time."""

BY_NAME: Final = (
    "cluster-autoscaler",
    "prometheus",
    "pulumi-language-yaml",
    "pulumi-language-nodejs",
    "pulumi-gen-sdk",
    "argo-cd",
    "flux-kustomize-controller",
    "flux-source-controller",
)
"""Parts that are installed only by name: the definition of ProvisioningRequest, promtool, programs in other languages,
and the definitions of GitOps tools."""


def part(name: str) -> Part:
    """The part of that name."""
    return next(p for p in PARTS if p.name == name)


def part_names(*, karpenter: bool = True, trainer: bool = False, kai: bool = False, lws: bool = True) -> list[str]:
    """Names of the parts of a sandbox with these options.

    `karpenter` launches nodes, `trainer` is Kubeflow Trainer with JobSet, `kai` is the KAI Scheduler, and `lws` is
    LeaderWorkerSet's controller. Parts in BY_NAME are in no sandbox.
    """
    left_out = {
        "karpenter": not karpenter, "jobset": not trainer, "trainer": not trainer, "kai-scheduler": not kai,
        "lws": not lws, **dict.fromkeys(BY_NAME, True),
    }  # fmt: skip
    return [p.name for p in PARTS if not left_out.get(p.name)]

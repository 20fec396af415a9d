"""Reads a Snapshot from manifests in files, for planning without a cluster."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from plimsoll.cluster.claims import ClaimObjects, Joining
from plimsoll.cluster.pods import with_blocking_pods
from plimsoll.errors import InvalidObjectError
from plimsoll.labels import API_VERSION, DEMAND, ENVIRONMENT, GROUP, WORKSPACE
from plimsoll.model import Snapshot
from plimsoll.model.api import Environment, GPUDemand, KnownNodeProfile, Workspace
from plimsoll.model.cluster import (
    Autoscaler,
    DaemonSet,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    PlainPod,
    Pod,
    PodDisruptionBudget,
    PriorityClass,
    ResourceQuota,
    StorageClass,
    Workload,
)
from plimsoll.model.dra import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from plimsoll.model.kai import PodGroup, Queue, SchedulingShard, Topology
from plimsoll.model.karpenter import (
    OPERATORS,
    AksNodeClass,
    CapacityBuffer,
    Ec2NodeClass,
    NodeClaim,
    NodeOverlay,
    NodePool,
    PodTemplate,
    ProvisioningRequest,
)
from plimsoll.model.meta import ObservedObject, identify, section
from plimsoll.observe.files.documents import Document, ManifestError, Place, read_documents
from plimsoll.observe.files.expansion import (
    RUNTIMES,
    WORKLOADS,
    is_runtime,
    is_workload,
    pods_of,
    scaled,
    why_not_expanded,
)
from plimsoll.observe.files.near_misses import near_misses
from plimsoll.observe.files.priorities import Priorities
from plimsoll.observe.files.tool_files import tool_file
from plimsoll.observe.pods import PlainPods, is_plain
from plimsoll.text import counted, misspelled, shortlist

READ: Final[dict[tuple[str, str], type[ObservedObject]]] = {
    ("v1", "Node"): Node,
    ("v1", "Pod"): Pod,
    ("v1", "Namespace"): Namespace,
    ("v1", "ResourceQuota"): ResourceQuota,
    ("policy/v1", "PodDisruptionBudget"): PodDisruptionBudget,
    ("v1", "PersistentVolumeClaim"): PersistentVolumeClaim,
    ("v1", "PersistentVolume"): PersistentVolume,
    ("storage.k8s.io/v1", "StorageClass"): StorageClass,
    ("scheduling.k8s.io/v1", "PriorityClass"): PriorityClass,
    ("karpenter.sh/v1", "NodeClaim"): NodeClaim,
    ("karpenter.sh/v1", "NodePool"): NodePool,
    ("karpenter.sh/v1alpha1", "NodeOverlay"): NodeOverlay,
    ("karpenter.k8s.aws/v1", "EC2NodeClass"): Ec2NodeClass,
    ("karpenter.azure.com/v1beta1", "AKSNodeClass"): AksNodeClass,
    ("scheduling.run.ai/v2", "Queue"): Queue,
    ("scheduling.run.ai/v2alpha2", "PodGroup"): PodGroup,
    ("kai.scheduler/v1alpha1", "Topology"): Topology,
    ("kai.scheduler/v1", "SchedulingShard"): SchedulingShard,
    (API_VERSION, "Workspace"): Workspace,
    (API_VERSION, "Environment"): Environment,
    ("apps/v1", "DaemonSet"): DaemonSet,
    ("apps/v1", "Deployment"): Workload,
    ("apps/v1", "StatefulSet"): Workload,
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): Workload,
    ("v1", "Service"): Workload,
    ("autoscaling/v2", "HorizontalPodAutoscaler"): Autoscaler,
    (API_VERSION, "GPUDemand"): GPUDemand,
    (API_VERSION, "NodeProfile"): KnownNodeProfile,
    ("resource.k8s.io/v1", "ResourceSlice"): ResourceSlice,
    ("resource.k8s.io/v1", "DeviceClass"): DeviceClass,
    ("resource.k8s.io/v1", "ResourceClaim"): ResourceClaim,
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): ResourceClaimTemplate,
    ("v1", "PodTemplate"): PodTemplate,
    ("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer"): CapacityBuffer,
    ("autoscaling.x-k8s.io/v1", "ProvisioningRequest"): ProvisioningRequest,
}
"""Kinds that planning reads, by apiVersion and kind. Other kinds are skipped with a warning."""

_OBJECT: Final = {"apiVersion", "kind", "metadata", "spec", "status"}
"""Fields of Plimsoll's kinds."""

_REQUIRING: Final = {"NodePool": ("spec", "template", "spec"), "NodeClaim": ("spec",)}
"""Where kinds have Karpenter's `requirements`."""

NAMESPACED: Final = (
    "Pod",
    "ResourceQuota",
    "PodDisruptionBudget",
    "PersistentVolumeClaim",
    "PodGroup",
    "PodTemplate",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "CapacityBuffer",
    "ProvisioningRequest",
    "Workspace",
    "DaemonSet",
    "Deployment",
    "StatefulSet",
    "LeaderWorkerSet",
    "Service",
    "HorizontalPodAutoscaler",
)
DEFAULT_NAMESPACE: Final = "default"
KAITO: Final = "kaito.sh/"
"""API group of KAITO's kinds, which are imported and not planned."""

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def snapshot_from_files(paths: Sequence[str]) -> Snapshot:
    """The Snapshot that the manifests in files and folders describe.

    Without an Environment among them, `Environment.default()` is used, with node auto-provisioning disabled. Raises
    ManifestError, which names file, document and field.
    """
    return _Reading().read(read_documents(paths))


class _Reading:
    def __init__(self) -> None:
        self._places: dict[tuple[str, str, str], Place] = {}
        self._with_uid: dict[str, str] = {}
        self._objects: dict[type[ObservedObject], list[Any]] = {kind: [] for kind in READ.values()}
        self._without_priority: set[tuple[str, str]] = set()
        """Pods, by namespace and name."""
        self._workloads: list[tuple[Place, dict[str, Any]]] = []
        """Those that are expanded to their pods once all files are read."""
        self._stand_for: dict[tuple[str, str], Place] = {}
        """Where the pods that they stand for are from, by namespace and name."""
        self._made_up: Counter[tuple[str, str, str]] = Counter()
        """Names that were made up, by kind, namespace and their beginning."""
        self._runtimes: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._plain = PlainPods()
        self._plain_pods: list[Pod] = []
        self._passed_over: Counter[str] = Counter()
        self._kaitos: Counter[str] = Counter()
        self._near_misses: dict[str, None] = {}

    def read(self, documents: Iterator[Document]) -> Snapshot:
        for document in documents:
            if tool := tool_file(document):
                self._passed_over[tool] += 1
                continue
            for place, manifest in objects_of(document):
                self._add(place, manifest)
                self._near_misses.update(dict.fromkeys(near_misses(manifest)))
        autoscalers = {each.target: each for each in self._objects[Autoscaler]}
        for place, workload in self._workloads:
            self._expand(place, scaled(workload, autoscalers))
        environments = self._objects[Environment]
        priorities = Priorities(self._objects[PriorityClass])
        pods = tuple(
            priorities.given_to(pod) if pod.key in self._without_priority else pod for pod in self._objects[Pod]
        )
        claims = ClaimObjects(
            tuple(self._objects[ResourceSlice]),
            tuple(self._objects[DeviceClass]),
            tuple(self._objects[ResourceClaim]),
            tuple(self._objects[ResourceClaimTemplate]),
        )
        joining = Joining()
        node_claims, budgets = tuple(self._objects[NodeClaim]), tuple(self._objects[PodDisruptionBudget])
        return Snapshot(
            environment=environments[0] if environments else Environment.default(),
            workspaces=tuple(self._objects[Workspace]),
            nodes=joining.nodes(tuple(self._objects[Node]), claims),
            node_claims=with_blocking_pods(node_claims, (*pods, *self._plain_pods), budgets)
            if any(each.deleting for each in node_claims)
            else node_claims,
            node_pools=tuple(self._objects[NodePool]),
            node_overlays=tuple(self._objects[NodeOverlay]),
            node_classes=(*self._objects[Ec2NodeClass], *self._objects[AksNodeClass]),
            pods=joining.pods(pods, claims),
            host_loads=self._plain.loads(),
            daemon_sets=tuple(self._objects[DaemonSet]),
            namespaces=tuple(self._objects[Namespace]),
            resource_quotas=tuple(self._objects[ResourceQuota]),
            disruption_budgets=budgets,
            volume_claims=tuple(self._objects[PersistentVolumeClaim]) or None,
            volumes=tuple(self._objects[PersistentVolume]),
            storage_classes=tuple(self._objects[StorageClass]),
            queues=tuple(self._objects[Queue]),
            pod_groups=tuple(self._objects[PodGroup]),
            topologies=tuple(self._objects[Topology]),
            scheduling_shards=tuple(self._objects[SchedulingShard]),
            workloads=tuple(self._objects[Workload]),
            autoscalers=tuple(self._objects[Autoscaler]),
            gpu_demands=tuple(self._objects[GPUDemand]),
            node_profiles=tuple(self._objects[KnownNodeProfile]),
            resource_slices=claims.slices,
            device_classes=claims.classes,
            resource_claims=claims.claims,
            resource_claim_templates=claims.templates,
            pod_templates=tuple(self._objects[PodTemplate]),
            capacity_buffers=tuple(self._objects[CapacityBuffer]),
            provisioning_requests=tuple(self._objects[ProvisioningRequest]),
            skipped=sum(self._passed_over.values()) + sum(self._kaitos.values()),
            warnings=(
                *self._near_misses,
                *priorities.warnings,
                *([] if environments else self._without_environment()),
                *(
                    f"{number} of kind {kind} skipped: not used in planning"
                    for kind, number in sorted(self._passed_over.items())
                ),
                *(
                    f"{number} of kind {kind} skipped: convert them with `plimsoll import kaito FILE`"
                    for kind, number in sorted(self._kaitos.items())
                ),
            ),
        )

    def _without_environment(self) -> Iterator[str]:
        """Warnings on what an Environment decides: Workspaces with instance types, and objects that request capacity
        for one. Its settings decide what these count as, so they are not guessed."""
        resources = [each.spec.resource for each in self._objects[Workspace]]
        if typed := sum(bool(each.instance_type or each.instance_types) for each in resources):
            yield (
                f"no Environment is in the files, so that node auto-provisioning counts as disabled, and no "
                f"Workspace may have an instance type ({counted(typed, 'Workspace')} with one): add the Environment"
            )
        objs = [each for kind in (Pod, CapacityBuffer, ProvisioningRequest) for each in self._objects[kind]]
        requests = [each for each in objs if DEMAND in each.labels and ENVIRONMENT in each.labels]
        if requests:
            names = sorted({each.labels[ENVIRONMENT] for each in requests})
            yield (
                f"requests for capacity ({counted(len(requests), 'object')}) do not count, because Environment "
                f"{shortlist(names)} is not in the files: add it"
            )

    def _add(self, place: Place, manifest: dict[str, Any]) -> None:
        version, kind = _text(manifest, "apiVersion", place), _text(manifest, "kind", place)
        model = READ.get((version, kind))
        if is_runtime(manifest):
            metadata = _metadata(manifest, kind, place, namespaced=kind == RUNTIMES[0])
            self._runtimes[kind, metadata.get("namespace", ""), str(metadata.get("name"))] = manifest
            return
        if is_workload(manifest) and WORKSPACE not in section(manifest, "metadata", "labels"):
            metadata = self._named(kind, _metadata(manifest, kind, place, namespaced=True))
            workload = {**manifest, "metadata": metadata}
            _check_names(metadata, manifest, place)
            self._check_name(place, (kind, metadata["namespace"], str(metadata.get("name"))), workload)
            self._workloads.append((place, workload))
            return
        if model is None:
            self._pass_over(place, version, kind)
            return
        metadata = self._named(kind, _metadata(manifest, kind, place, namespaced=kind in NAMESPACED))
        if model is Workload and WORKSPACE not in (metadata.get("labels") or {}):
            self._passed_over[f"{kind} ({version}) without the label {WORKSPACE}"] += 1
            return
        manifest = {**manifest, "metadata": metadata}
        _check_names(metadata, manifest, place)
        if version == API_VERSION:
            _check_fields(manifest, place)
        _check_requirements(kind, manifest, place)
        try:
            read = model.read(manifest)
        except InvalidObjectError as error:
            raise ManifestError(f"{place}: {error.message}") from None
        self._check_unique(place, kind, manifest, read)
        if isinstance(read, Pod) and is_plain(manifest):
            plain = PlainPod.read(manifest)
            if plain is not None:
                self._plain.put(read.key, plain)
                self._plain_pods.append(read)
            return
        if model is Pod and (manifest.get("spec") or {}).get("priority") is None:
            self._without_priority.add(read.key)
        self._objects[model].append(read)

    def _expand(self, place: Place, workload: dict[str, Any]) -> None:
        """Adds the pods of a workload."""
        why = why_not_expanded(workload, self._runtimes)
        if why:
            self._passed_over[f"{workload['kind']} ({workload['apiVersion']}) {why}"] += 1
            return
        try:
            for pod in pods_of(workload, self._runtimes):
                metadata = pod["metadata"]
                if self._stand_for.setdefault((metadata["namespace"], metadata["name"]), place) is not place:
                    # One of another kind has the name. In a cluster, names of pods have a random end.
                    metadata["name"] = f"{workload['kind'].lower()}-{metadata['name']}"
                self._add(place, pod)
        except ManifestError as error:
            message = error.message.removeprefix(f"{place}: ")
            raise ManifestError(f"{place}: {identify(workload)}: {message}", error.hint) from None

    def _named(self, kind: str, metadata: dict[str, Any]) -> dict[str, Any]:
        """With a name in place of `generateName`: the apiserver makes one up, too."""
        start = metadata.get("generateName")
        if metadata.get("name") is not None or not isinstance(start, str) or not start:
            return metadata
        key = (kind, metadata.get("namespace", ""), start)
        self._made_up[key] += 1
        return {**metadata, "name": f"{start}{self._made_up[key]}"}

    def _pass_over(self, place: Place, version: str, kind: str) -> None:
        if version.startswith(f"{GROUP}/") and version != API_VERSION:
            raise ManifestError(f"{place}: apiVersion: {version!r} is not known: use {API_VERSION}")
        counts = self._kaitos if version.startswith(KAITO) else self._passed_over
        near = _near_kind(version, kind)
        counts[f"{kind} ({version})" + (f" (did you mean {near}?)" if near else "")] += 1

    def _check_name(self, place: Place, key: tuple[str, str, str], manifest: dict[str, Any]) -> None:
        earlier = self._places.setdefault(key, place)
        if earlier is not place:
            raise ManifestError(f"{place}: {identify(manifest)} is already in {earlier}", "keep one of the two")

    def _check_unique(self, place: Place, kind: str, manifest: dict[str, Any], read: ObservedObject) -> None:
        """Notes the object's name and UID, which no other may have, and that there is one Environment."""
        self._check_name(place, (kind, read.namespace, read.name), manifest)
        if read.uid and read.uid in self._with_uid:
            problem = f"metadata.uid: {read.uid!r} is already used by {self._with_uid[read.uid]}"
            raise ManifestError(f"{place}: {identify(manifest)}: {problem}", "remove the UID from the copy")
        self._with_uid[read.uid] = identify(manifest)
        if isinstance(read, Environment) and self._objects[Environment]:
            first = next(at for (of_kind, *_), at in self._places.items() if of_kind == kind)
            raise ManifestError(
                f"{place}: a second Environment; the first is in {first}", "plan with one Environment at a time"
            )


def objects_of(document: Document) -> Iterator[tuple[Place, dict[str, Any]]]:
    """The object of a document, or the items of its List."""
    place, value, item_lines = document
    kind = value.get("kind")
    items = value.get("items")
    if not (isinstance(kind, str) and kind.endswith("List")) or (kind != "List" and not isinstance(items, list)):
        yield place, value
        return
    if items is not None and not isinstance(items, list):
        raise ManifestError(f"{place}: items: a List needs a list")
    for number, item in enumerate(items or (), start=1):
        line = item_lines[number - 1] if number <= len(item_lines) else place.line
        at = place._replace(item=number, line=line)
        if not isinstance(item, dict):
            raise ManifestError(f"{at}: not an object")
        # The items of a typed list, as the API returns it, have no kind and apiVersion.
        of_list = {} if kind == "List" else {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix("List")}
        yield from objects_of(Document(at, of_list | item))


def _text(manifest: dict[str, Any], field: str, place: Place) -> str:
    value = manifest.get(field)
    if not isinstance(value, str) or not value:
        problem = "missing" if value is None else f"{value!r} is not a string"
        raise ManifestError(
            f"{place}: {field}: {problem}", "objects of Kubernetes have apiVersion and kind: leave out files of others"
        )
    return value


def _metadata(manifest: dict[str, Any], kind: str, place: Place, *, namespaced: bool) -> dict[str, Any]:
    """The object's metadata, with a default namespace for namespaced kinds and without one for others."""
    metadata = manifest.get("metadata", {})
    if not isinstance(metadata, dict):
        raise ManifestError(f"{place}: metadata: must be an object")
    for field in ("name", "namespace"):
        if not isinstance(metadata.get(field, ""), str | None):
            hint = None if isinstance(metadata[field], dict | list) else "put it in quotes"
            raise ManifestError(f"{place}: metadata.{field}: must be a string, not {metadata[field]!r}", hint)
    for field in ("labels", "annotations"):
        texts = metadata.get(field, {})
        if not isinstance(texts, dict):
            raise ManifestError(f"{place}: metadata.{field}: must be an object")
        for key, value in texts.items():
            if not isinstance(value, str):
                raise ManifestError(
                    f"{place}: metadata.{field}.{key}: must be a string, not {value!r}", "put it in quotes"
                )
    metadata = {key: value for key, value in metadata.items() if key != "namespace" or namespaced}
    if namespaced:
        metadata["namespace"] = metadata.get("namespace") or DEFAULT_NAMESPACE
    if kind == "Environment":
        metadata.setdefault("name", Environment.default().name)
    return metadata


def _check_names(metadata: dict[str, Any], manifest: dict[str, Any], place: Place) -> None:
    """As the apiserver: objects that Plimsoll creates have these names, and people read them."""
    for field, longest in (("name", 253), ("namespace", 63)):
        value = metadata.get(field)
        if isinstance(value, str) and (len(value) > longest or not _SUBDOMAIN.fullmatch(value)):
            raise ManifestError(
                f"{place}: {identify(manifest)}: metadata.{field}: {value!r} is not a valid name: at most {longest} of "
                "a-z 0-9 - and ."
            )


def _near_kind(version: str, kind: str) -> str:
    """The kind of the same API group that is read and that was meant; empty if none is near."""
    group = version.partition("/")[0]
    return misspelled(kind, [name for of, name in (*READ, *WORKLOADS) if of.partition("/")[0] == group], 0.85)


def _check_fields(manifest: dict[str, Any], place: Place) -> None:
    """Fields beside `spec`, as in manifests of KAITO. They would be left out, and are written for a purpose."""
    for field in sorted(manifest.keys() - _OBJECT):
        raise ManifestError(
            f"{place}: {identify(manifest)}: {field}: unknown field of {manifest['kind']}",
            "fields beside apiVersion, kind and metadata are written under spec",
        )


def _check_requirements(kind: str, manifest: dict[str, Any], place: Place) -> None:
    """Operators that Karpenter does not have, and values of another type than text: `N` without quotes is a boolean,
    and no family of instance types."""
    path = _REQUIRING.get(kind, ())
    items = section(manifest, *path).get("requirements") if path else None
    for number, item in enumerate(items if isinstance(items, list) else ()):
        operator = item.get("operator") if isinstance(item, dict) else None
        if isinstance(operator, str) and operator not in OPERATORS:
            field = ".".join((*path, f"requirements[{number}].operator"))
            raise ManifestError(
                f"{place}: {identify(manifest)}: {field}: {operator!r} is not known: use {', '.join(OPERATORS)}"
            )
        values = item.get("values") if isinstance(item, dict) else None
        for value in values if isinstance(values, list) else ():
            if not isinstance(value, str):
                field = ".".join((*path, f"requirements[{number}].values"))
                raise ManifestError(
                    f"{place}: {identify(manifest)}: {field}: must be a string, not {value!r}", "put it in quotes"
                )

"""Checks the volumes of a preset's pods: refuses some, and warns of those that not every pod can mount."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from plimsoll.cluster.volumes import NoVolume, conditions_of
from plimsoll.estimating import BYTES_PER_GIB, preset_of
from plimsoll.model import Reason, Refusal
from plimsoll.model.api import EnvironmentSpec, Inference, Workspace
from plimsoll.model.cluster import VolumeClaim, read_claims
from plimsoll.model.meta import Placement, check_volume_source, dig
from plimsoll.plan.view import ClusterView
from plimsoll.presets import ModelCatalog, ModelPreset
from plimsoll.quantity import parse_quantity
from plimsoll.text import counted, shortlist

_CLAIM: Final = "persistentVolumeClaim"
_SIZES: Final = {"emptyDir": "sizeLimit", "ephemeral": "volumeClaimTemplate.spec.resources.requests.storage"}
"""Field with the size of a volume that is empty at first, by type of volume."""
_SMALL: Final = frozenset({"configMap", "downwardAPI", "projected", "secret"})
"""Types that hold objects of the cluster, of 1 MiB at most."""
_DATA: Final = ("dataSource", "dataSourceRef")
"""Fields of a claim that starts with the data of another one, or of a snapshot."""
_ONE_NODE: Final = frozenset(
    {"awsElasticBlockStore", "azureDisk", "cinder", "gcePersistentDisk", "photonPersistentDisk", "vsphereVolume"}
)
"""Disks that are attached to one node at a time
(https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes)."""


class _Volume(NamedTuple):
    field: str
    source: Mapping[str, Any]
    read_only: bool = False
    adapter: bool = False


def refused_volume(workspace: Workspace, environment: EnvironmentSpec, models: ModelCatalog) -> Refusal | None:
    """A refusal of the first volume with which the pods could not be created, or the server could not start."""
    inference = workspace.spec.inference
    for volume in _volumes(workspace, environment):
        try:
            check_volume_source(volume.source)
        except ValueError as error:
            return Refusal(Reason.INVALID_SPEC, f"{volume.field}: {error}")
    weights = _weights(workspace, environment)
    if weights is None or inference is None:
        return None
    problem = _unfit(weights, inference, models)
    return Refusal(Reason.INVALID_SPEC, f"{weights.field}.{problem}") if problem else None


def _unfit(weights: _Volume, inference: Inference, models: ModelCatalog) -> str:
    """Why the server could not start with its model's files on the volume; empty where nothing says so."""
    [(kind, fields)] = weights.source.items()
    if kind in _SMALL:
        return f"{kind} cannot hold a model's files: use another type of volume, such as persistentVolumeClaim"
    if not weights.read_only:
        if kind == "image" or fields.get("readOnly") is True:
            return f"{kind} can only be read, and the server would download the model there: set weights.readOnly"
    elif kind in _SIZES and not any(dig(fields, f"volumeClaimTemplate.spec.{name}") for name in _DATA):
        return f"{kind} is empty when a pod starts, and weights.readOnly downloads nothing: remove weights.readOnly"
    size = dig(fields, _SIZES[kind]) if kind in _SIZES else None
    if size is None:
        return ""
    known = preset_of(inference, models)
    if not isinstance(known, ModelPreset) or parse_quantity(size) >= known.size_gib * BYTES_PER_GIB:
        return ""
    return (
        f"{kind}.{_SIZES[kind]} is {size}, and the files of preset {known.name!r} take {known.size_gib:g} GiB: raise it"
    )


def too_small_volume(workspace: Workspace, view: ClusterView) -> NoVolume | None:
    """A claim whose disk does not hold the model's files."""
    weights, inference = _weights(workspace, view.settings), workspace.spec.inference
    if weights is None or inference is None or _CLAIM not in weights.source:
        return None
    known, claim = preset_of(inference, view.models), dig(weights.source, f"{_CLAIM}.claimName")
    size = view.storage.disk_size(workspace.namespace, str(claim))
    if not isinstance(known, ModelPreset) or size is None or size >= known.size_gib * BYTES_PER_GIB:
        return None
    problem = (
        f"{weights.field}: the disk of PersistentVolumeClaim {claim!r} has {size / BYTES_PER_GIB:.4g} GiB, and the "
        f"files of preset {known.name!r} take {known.size_gib:g} GiB"
    )
    return NoVolume(str(claim), problem, "use a larger one, or raise spec.resources.requests.storage of the claim")


def mounted_claims(workspace: Workspace, environment: EnvironmentSpec) -> Iterator[VolumeClaim]:
    """Those that its pods mount; without a name: each pod has its own."""
    declared = [volume.source for volume in _volumes(workspace, environment)]
    of_template = dig(workspace.template or {}, "spec.volumes")
    for claim in read_claims([*declared, *(of_template if isinstance(of_template, list) else ())]):
        yield claim._replace(name="") if claim.ephemeral else claim


def unplaced_volume(where: Placement | NoVolume, *, new_nodes: bool) -> Refusal | None:
    """A refusal of claims with which no pod starts, or `new_nodes` cannot be asked for."""
    if isinstance(where, NoVolume):
        return Refusal(Reason.INVALID_SPEC, str(where))
    if not new_nodes or conditions_of(where) is not None:
        return None
    alternatives = shortlist([" and ".join(map(str, term)) for term in where.affinity])
    return Refusal(
        Reason.NOT_SUPPORTED,
        f"its volumes are on nodes with {alternatives}, which one NodeClaim cannot require: use a volume of one zone, "
        "or existing nodes (nodeAutoProvisioning: disabled)",
    )


def shared_volumes(workspace: Workspace, environment: EnvironmentSpec, nodes: int) -> Iterator[str]:
    """Warnings on volumes that the pods share on several nodes: not every claim or disk can be on more than one."""
    if nodes < 2:
        return
    for volume in _volumes(workspace, environment):
        [(kind, fields)] = volume.source.items()
        read_only = volume.read_only or fields.get("readOnly") is True
        remedy = "use a claim that several nodes can have"
        if not (volume.read_only or volume.adapter):  # the server downloads the model there, so it may start empty
            remedy = "use ephemeral.volumeClaimTemplate, which makes a claim for each pod"
        if kind == _CLAIM:
            modes = "ReadOnlyMany or ReadWriteMany" if read_only else "ReadWriteMany"
            yield (
                f"{volume.field}: the pods of {counted(nodes, 'node')} mount claim {fields['claimName']!r}, for which "
                f"it needs access mode {modes}; with ReadWriteOnce, only those of one node start: {remedy}"
            )
        elif kind in _ONE_NODE and not read_only:
            pods = f"the pods of {counted(nodes, 'node')}"
            yield f"{volume.field}: {pods} mount it, but {kind} is attached to one: {remedy}"


def _volumes(workspace: Workspace, environment: EnvironmentSpec) -> Iterator[_Volume]:
    """The volumes that a preset's pods get; adapters are for presets alone."""
    weights, inference = _weights(workspace, environment), workspace.spec.inference
    if weights is not None:
        yield weights
    for adapter in inference.adapters if inference is not None else ():
        if adapter.source.volume_source is not None:
            field = f"inference.adapters: adapter {adapter.source.name!r}: volumeSource"
            yield _Volume(field, adapter.source.volume_source, adapter=True)


def _weights(workspace: Workspace, environment: EnvironmentSpec) -> _Volume | None:
    """The volume with a preset's files; None where it is the default, or there is no preset."""
    inference = workspace.spec.inference
    if inference is None or inference.preset is None:
        return None
    if inference.weights is not None:
        return _Volume("inference.weights.volumeSource", inference.weights.volume_source, inference.weights.read_only)
    if environment.weights is not None:
        declared = environment.weights
        return _Volume("weights.volumeSource of the Environment", declared.volume_source, declared.read_only)
    return None

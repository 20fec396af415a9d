"""Where the pods of a Workspace may run besides what the Workspace itself chooses: in KAI's node pool, and where their
volumes are; and by their template or settings, with a warning where no node of it is known to be like that."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from plimsoll.cluster.volumes import NoVolume, conditions_of
from plimsoll.labels import ZONE
from plimsoll.model.api import EnvironmentSpec, Workspace, is_chosen, is_owned
from plimsoll.model.meta import ANYWHERE, NodeRequirement, Placement
from plimsoll.plan.view import ClusterView
from plimsoll.plan.workspaces.shard import in_shard
from plimsoll.plan.workspaces.volumes import mounted_claims, too_small_volume
from plimsoll.serving import settings_of
from plimsoll.text import shortlist


def placements(view: ClusterView) -> Mapping[tuple[str, str], Placement | NoVolume]:
    """Where the pods of each Workspace may be besides their own fields, by namespace and name: on the nodes that KAI's
    scheduler of their node pool sees, and where their volumes are."""
    arguments = (view.by_age, view.settings, view.storage, view.models, view.sharded)
    return view.known.result("placements", arguments, partial(_placements, view))


def _placements(view: ClusterView) -> Mapping[tuple[str, str], Placement | NoVolume]:
    return {
        workspace.key: too_small_volume(workspace, view)
        or view.storage.narrowed(
            in_shard(workspace, view), workspace.namespace, mounted_claims(workspace, view.settings)
        )
        for workspace in view.by_age
    }


def known_placement(placement: Placement | NoVolume) -> Placement:
    """Anywhere, as long as it is not known where the volumes are."""
    return ANYWHERE if isinstance(placement, NoVolume) else placement


def unmet_by_nodes(
    workspace: Workspace, environment: EnvironmentSpec, nodes: Iterable[tuple[str, Mapping[str, str]]]
) -> Iterator[str]:
    """That the pods may run on none of these nodes, given by name and labels."""
    field, placement = _own(workspace, environment)
    if (placement.node_selector or placement.affinity) and not any(
        placement.allows(labels, name) for name, labels in nodes
    ):
        said = shortlist(map(str, _conditions(placement))) or "another node"
        yield f"{field} requires {said}, and no usable node is like that: its pods stay Pending; label one"


def unmet_by_new_nodes(
    workspace: Workspace, environment: EnvironmentSpec, known: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """What new nodes are not known to have; `known` are the values of labels that they may have. Labels that others
    write, such as GPU Feature Discovery, are left out, and so are alternatives."""
    field, placement = _own(workspace, environment)
    selected = workspace.spec.resource.selector.keys()
    unmet = [each for each in _conditions(placement) if not _met(each, known, selected)]
    if unmet:
        yield (
            f"{field} requires {shortlist(map(str, unmet))}, which new nodes are not known to have: its pods may stay "
            "Pending; require it by resource.labelSelector, zones or capacityType, which new nodes meet"
        )


def against_type(
    workspace: Workspace, environment: EnvironmentSpec, fixed: Mapping[str, str]
) -> tuple[str, NodeRequirement] | None:
    """The field by which the pods require another value of a label than nodes of their type have with any settings, and
    what it requires."""
    field, placement = _own(workspace, environment)
    against = (each for each in _conditions(placement) if each.key in fixed and not each.allows(fixed[each.key]))
    found = next(against, None)
    return None if found is None else (field, found)


def _met(condition: NodeRequirement, known: Mapping[str, Sequence[str]], selected: Iterable[str]) -> bool:
    key = condition.key
    if key in known:
        return all(map(condition.allows, known[key]))
    return key in selected or condition.allows(None) or (key != ZONE and (is_chosen(key) or is_owned(key)))


def _own(workspace: Workspace, environment: EnvironmentSpec) -> tuple[str, Placement]:
    """The field that says where the pods may run, and where."""
    inference = workspace.spec.inference
    if inference is None:
        return "", ANYWHERE
    field, spec = "inference.template", (workspace.template or {}).get("spec")
    if spec is None:
        affinity = settings_of(inference, environment).node_affinity
        field, spec = "nodeAffinity of the settings of pods", {"affinity": {"nodeAffinity": affinity or {}}}
    try:
        return field, Placement.read(spec)
    except ValueError:
        return "", ANYWHERE  # the apiserver refuses such a pod


def _conditions(placement: Placement) -> tuple[NodeRequirement, ...]:
    """Those that every node must meet; of alternatives none."""
    selector = (NodeRequirement(key, "In", (value,)) for key, value in placement.node_selector)
    return (*selector, *(conditions_of(placement) or ()))

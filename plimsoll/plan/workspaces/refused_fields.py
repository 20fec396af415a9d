"""Fields of a Workspace that are refused by name, or warned of."""

from collections.abc import Iterator

from plimsoll.model import Reason, Refusal
from plimsoll.model.api import PARTITION_FORBIDDEN, Workspace
from plimsoll.model.cluster import Pod
from plimsoll.model.meta import dig
from plimsoll.text import shortlist


def template_devices(workspace: Workspace, resource: str) -> int | Refusal:
    """Devices of the resource that the Workspace's template states; 0 where it has none, or states none."""
    inference = workspace.spec.inference
    template = inference.template if inference is not None else None
    if template is None:
        return 0
    groups = [
        tuple(each for each in dig(template, f"spec.{name}") or () if isinstance(each, dict))
        for name in ("containers", "initContainers")
    ]
    try:
        return Pod.model_construct(name="", containers=groups[0], init_containers=groups[1]).devices(resource)
    except (ValueError, AttributeError) as error:
        return Refusal(
            Reason.INVALID_SPEC,
            f"inference.template asks for {resource}: {error}: write a whole number of devices",
        )


def unsupported(workspace: Workspace, *, auto_provisioning: bool) -> Refusal | None:
    """The first field that is not scheduled, with what to write instead."""
    spec = workspace.spec
    if spec.tuning is not None:
        count = spec.resource.count or 1
        if count > 1:
            return Refusal(
                Reason.INVALID_SPEC, f"tuning runs on one node, and resource.count is {count}: leave resource.count out"
            )
        return Refusal(
            Reason.NOT_SUPPORTED,
            "tuning is not scheduled: declare this Workspace with resource alone, which is given one node, and run the "
            f"tuning there as a Job with the nodeSelector plimsoll.dev/workspace: {workspace.name}"
            if auto_provisioning
            else "tuning is not scheduled: run it as a Job on the nodes that resource.labelSelector names",
        )
    if spec.resource.partition is not None and auto_provisioning:
        return Refusal(Reason.INVALID_SPEC, PARTITION_FORBIDDEN)
    for adapter in spec.inference.adapters if spec.inference is not None else ():
        where = f"inference.adapters: adapter {adapter.source.name!r}"
        if adapter.source.urls:
            return Refusal(
                Reason.NOT_SUPPORTED,
                f"{where} comes from source.urls, which is not read: use an image or a volumeSource",
            )
        if adapter.strength is not None and float(adapter.strength) != 1:
            return Refusal(
                Reason.NOT_SUPPORTED,
                f"{where} has strength {adapter.strength}, and vLLM serves adapters at full strength only: leave it "
                "out, and scale the adapter's own weights",
            )
    return None


def unread(workspace: Workspace) -> Iterator[str]:
    """Warnings on deprecated fields that are accepted and not read."""
    preferred = workspace.spec.resource.preferred_nodes
    if preferred:
        yield (
            f"resource.preferredNodes is deprecated and not read ({shortlist(preferred)}): resource.labelSelector "
            "names the nodes"
        )

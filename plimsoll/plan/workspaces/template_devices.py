"""GPUs that a pod template asks for by itself."""

from plimsoll.model import Reason, Refusal
from plimsoll.model.api import Workspace
from plimsoll.model.cluster import Pod
from plimsoll.model.meta import dig


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

"""FoundationSpec: the settings of a foundation."""

from pydantic import Field

from plimsoll.model.api import TRIGGER_NAMESPACE, TriggerNamespace
from plimsoll.model.meta import Declared


class FoundationSpec(Declared):
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels of the namespace plimsoll-system, such as those of Pod Security."""
    service_account_annotations: dict[str, str] = Field(default_factory=dict)
    """Annotations of the controller's service account, such as those of a cloud identity."""
    trigger_namespace: TriggerNamespace = TRIGGER_NAMESPACE
    """Namespace of capacity requests."""

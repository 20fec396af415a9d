"""Which fields of a Workspace may change, by provisioning mode."""

import pytest

from plimsoll.model.api import WorkspaceSpec, changes_refused
from tests.immutability.cases import CHANGES, Change


@pytest.mark.parametrize("auto_provisioning", [False, True], ids=["existing", "provisioned"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_changes_are_refused(change: Change, auto_provisioning: bool) -> None:
    old, new = WorkspaceSpec.model_validate(change.before), WorkspaceSpec.model_validate(change.after)
    expected = change.provisioned if auto_provisioning else change.existing
    assert changes_refused(old, new, auto_provisioning=auto_provisioning) == list(expected)


@pytest.mark.parametrize("auto_provisioning", [False, True])
def test_unchanged_fields_are_never_refused(auto_provisioning: bool) -> None:
    for spec in (spec for change in CHANGES for spec in (change.before, change.after)):
        kept = WorkspaceSpec.model_validate(spec)
        assert changes_refused(kept, kept, auto_provisioning=auto_provisioning) == [], spec

"""Which namespaces an Environment may serve, where the controller has rights in some only.

Without this rule, an Environment could serve a namespace in which the controller may create no workload: nodes would be
created for it, and nothing would run on them.
"""

from collections.abc import Sequence
from typing import Final

from plimsoll.components.admission.policy import AdmissionPolicy, denying, resource_rule
from plimsoll.labels import GROUP
from plimsoll.policy import text, texts

SERVED_POLICY: Final = "plimsoll-served-namespaces"

_ACCESS: Final = "{}.?spec.?access"
_OTHERS: Final = (
    "variables.access.map(entry, entry.namespaces.filter(each, !(each in variables.served)).join(', '))"
    ".filter(each, each != '').join(', ')"
)


def served_policy(namespaces: Sequence[str]) -> AdmissionPolicy:
    """The policy: `access` of an Environment names no other namespaces, and not every one. An Environment whose
    `access` stays as it is may be updated and deleted."""
    new, old = _ACCESS.format("object"), _ACCESS.format("oldObject")
    listed = text(", ".join(namespaces))
    message = (
        f"'spec.access of the Environment must name namespaces of the foundation stack only (servedNamespaces: ' +"
        f" {listed} + '), because the controller may create workloads in no others, and it ' +"
        f" (size(variables.access) == 0 ? 'has no entry, which allows every namespace' : 'names ' + {_OTHERS})"
    )
    return denying(
        [resource_rule(GROUP, "environments")],
        (
            f"(oldObject != null && {new} == {old}) || (size(variables.access) > 0"
            " && variables.access.all(entry, entry.namespaces.all(each, each in variables.served)))",
            message,
        ),
        variables={"access": f"{new}.orValue([])", "served": texts(namespaces)},
    )

"""Labels that the environment keeps for itself: what is said where a Workspace uses one."""

from typing import Final

SELECTOR_RESERVED: Final = (
    "resource.labelSelector uses {keys}: label keys that start with {prefixes} are reserved; select nodes by labels "
    "of your own"
)
TEMPLATE_RESERVED: Final = (
    "inference.template.metadata.labels uses {keys}: label keys that start with {prefixes} are reserved; remove them"
)

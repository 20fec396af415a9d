"""Rules on the provisioning mode: existing (BYO) or provisioned nodes, and which provisioner."""

from collections.abc import Iterator
from typing import Any, Final, Literal

from plimsoll.labels import GROUP
from plimsoll.model.api import (
    CHOSEN,
    CHOSEN_PREFIXES,
    INSTANCE_TYPE_GIVEN,
    INSTANCE_TYPE_REQUIRED,
    NODE_LABELS_REFUSED,
    OWNED_DOMAINS,
    PARTITION_FORBIDDEN,
    SELECTOR_RESERVED,
    TEMPLATE_RESERVED,
    Provisioner,
    instance_type_violation,
    refused_node_labels,
)
from plimsoll.model.meta import Declared, Severity, section
from plimsoll.policy.cel import message, option, setting, texts, value
from plimsoll.policy.cel import text as quoted
from plimsoll.policy.context import Mode, PolicyContext
from plimsoll.policy.fields import Manifest, is_kind, items, join, text
from plimsoll.policy.rule import Cel, Family, Fault, Needs, Rule, Subject
from plimsoll.policy.workspaces import KAITO_GROUP, workspace_of

_WORKSPACES: Final = ("Workspace", "InferenceSet")
_SUBJECTS: Final = (Subject.WORKSPACES, Subject.KAITO)


class ModeOptions(Declared):
    """Absent: the Environment's values; without a known mode, what depends on it is not checked."""

    node_auto_provisioning: Literal["enabled", "disabled"] | None = None
    provisioner: Literal["byo", "nodeclaim", "static-nodepool", "trigger-pod"] | None = None

    def mode(self, context: PolicyContext) -> Mode | None:
        return Mode.of(self.manifest()) if self.manifest() else context.mode


def _instance_types(manifest: Manifest, context: PolicyContext, options: ModeOptions) -> Iterator[Fault]:
    workspace, mode = workspace_of(manifest), options.mode(context)
    if workspace is None or mode is None:
        return
    given = next(iter(workspace.instance_types), None)
    narrows = context.byo_type_narrows and is_kind(manifest, GROUP, "Workspace")
    violation = instance_type_violation(given, auto_provisioning=mode.auto_provisioning, narrows=narrows)
    if violation is not None:
        yield Fault(join(workspace.path, "resource", "instanceType"), violation)


def _partitions(manifest: Manifest, context: PolicyContext, options: ModeOptions) -> Iterator[Fault]:
    workspace, mode = workspace_of(manifest), options.mode(context)
    if workspace is None or not workspace.resource.get("partition"):
        return
    # An instance type implies provisioned nodes, if the mode is not known.
    if mode.auto_provisioning if mode is not None else workspace.instance_types:
        yield Fault(join(workspace.path, "resource", "partition"), PARTITION_FORBIDDEN)


def _selectors(manifest: Manifest, context: PolicyContext, options: ModeOptions) -> Iterator[Fault]:
    workspace, mode = workspace_of(manifest), options.mode(context)
    if workspace is None or workspace.instance_types or not workspace.selector_empty:
        return
    if not any(is_kind(manifest, KAITO_GROUP, kind) for kind in _WORKSPACES):
        return  # Plimsoll chooses nodes with the same GPUs.
    if mode is None or not mode.auto_provisioning:
        yield Fault(
            workspace.selector_path,
            f"{workspace.selector_path} is empty and no instance type is set, so every node of the cluster "
            "matches: select nodes with matchLabels or matchExpressions",
        )


def _reserved(manifest: Manifest, context: PolicyContext, _: Any) -> Iterator[Fault]:
    workspace = workspace_of(manifest)
    if workspace is None:
        return
    prefixes = ", ".join(context.reserved_prefixes)
    expressions = (text(each, "key") for _, each in items(workspace.selector, "matchExpressions"))
    keys = _reserved_keys((*section(workspace.selector, "matchLabels"), *expressions), context)
    if keys:
        yield Fault(workspace.selector_path, SELECTOR_RESERVED.format(keys=keys, prefixes=prefixes))
    keys = _reserved_keys(section(workspace.spec, "inference", "template", "metadata", "labels"), context)
    if keys:
        path = join(workspace.path, "inference", "template", "metadata", "labels")
        yield Fault(path, TEMPLATE_RESERVED.format(keys=keys, prefixes=prefixes))


def _reserved_keys(keys: Any, context: PolicyContext) -> str:
    return ", ".join(key for key in keys if isinstance(key, str) and key.startswith(context.reserved_prefixes))


def _node_labels(manifest: Manifest, context: PolicyContext, options: ModeOptions) -> Iterator[Fault]:
    workspace, mode = workspace_of(manifest), options.mode(context)
    if workspace is None or mode is None or not mode.auto_provisioning or not is_kind(manifest, GROUP, "Workspace"):
        return
    given = [
        *section(workspace.selector, "matchLabels"),
        *(text(each, "key") for _, each in items(workspace.selector, "matchExpressions")),
    ]
    keys = refused_node_labels((key for key in given if isinstance(key, str)), context.node_label_prefixes)
    if keys:
        yield Fault(workspace.selector_path, NODE_LABELS_REFUSED.format(keys=", ".join(keys)))


def _deprecated(manifest: Manifest, context: PolicyContext, _: Any) -> Iterator[Fault]:
    workspace = workspace_of(manifest)
    if workspace is None:
        return
    path = join(workspace.path, "resource")
    if workspace.resource.get("preferredNodes"):
        yield Fault(
            join(path, "preferredNodes"),
            "resource.preferredNodes is deprecated and ignored: select the nodes with resource.labelSelector",
        )
    count = workspace.resource.get("count")
    if not isinstance(count, int) or isinstance(count, bool):
        return
    if workspace.spec.get("tuning") and count > 1:
        yield Fault(join(path, "count"), f"resource.count is {count}, and tuning runs on one node: set it to 1")
    elif count > 1 and is_kind(manifest, KAITO_GROUP, "Workspace"):
        yield Fault(
            join(path, "count"),
            f"resource.count is {count}, and it is deprecated and ignored: KAITO computes the number of nodes; "
            "remove it",
        )


def _node_claims(manifest: Manifest, context: PolicyContext, options: ModeOptions) -> Iterator[Fault]:
    mode = options.mode(context)
    if mode is None or mode.provisioner == Provisioner.NODECLAIM or not is_kind(manifest, "karpenter.sh", "NodeClaim"):
        return
    owners = items(section(manifest, "metadata"), "ownerReferences")
    if not any(text(owner, "kind") == "NodePool" for _, owner in owners):
        yield Fault(
            "kind",
            f"the provisioner of this environment is {mode.provisioner!r}, which does not use NodeClaims: remove the "
            "NodeClaim, or set the provisioner to 'nodeclaim'",
        )


def _mode_variables(rule: str) -> dict[str, str]:
    """The mode, from the rule's options if they set it, otherwise from the Environment."""
    named = option(rule, "nodeAutoProvisioning", "''")
    provisioner = option(rule, "provisioner", "''")
    return {
        f"{_camel(rule)}Mode": f"{named} != '' ? {named} : ({provisioner} != '' ? ({provisioner} == 'byo' ? 'disabled'"
        f" : 'enabled') : {setting('node_auto_provisioning')})",
    }


def _camel(rule: str) -> str:
    head, *rest = rule.split("-")
    return head + "".join(each.title() for each in rest)


def _provisioned(rule: str) -> str:
    return f"variables.{_camel(rule)}Mode == 'enabled'"


_IS_SET: Final = "object.kind == 'InferenceSet'"
_VARIABLES: Final = {
    "workspace": f"!object.apiVersion.startsWith('kaito.sh/') ? object.spec : ({_IS_SET} ? object.spec.template"
    " : object)",
    "instanceTypes": f"[{value('variables.workspace', 'resource.instanceType', quoted(''))}].filter(each, each != '')"
    f" + {value('variables.workspace', 'resource.instanceTypes', '[]')}",
    "instanceType": "size(variables.instanceTypes) > 0 ? variables.instanceTypes[0] : ''",
    "selector": f"{_IS_SET} ? {value('object', 'spec.labelSelector', '{}')}"
    f" : {value('variables.workspace', 'resource.labelSelector', '{}')}",
    "matchLabels": value("variables.selector", "matchLabels", "{}"),
    "matchExpressions": value("variables.selector", "matchExpressions", "[]"),
}
_RESERVED_VARIABLES: Final = {
    **_VARIABLES,
    "prefixes": setting("reserved_label_prefixes"),
    "reservedInSelector": "(variables.matchLabels.map(key, key) + variables.matchExpressions.map(each, each.key))"
    ".filter(key, variables.prefixes.exists(prefix, key.startsWith(prefix)))",
    "templateLabels": value("variables.workspace", "inference.template.metadata.labels", "{}"),
    "reservedInTemplate": "variables.templateLabels.map(key, key)"
    ".filter(key, variables.prefixes.exists(prefix, key.startsWith(prefix)))",
}
_NODE_LABEL_VARIABLES: Final = {
    **_VARIABLES,
    "nodeLabels": "(variables.matchLabels.map(key, key) + variables.matchExpressions.map(each, each.key))"
    f".filter(key, !(key in {texts(CHOSEN)} || {texts(CHOSEN_PREFIXES)}.exists(prefix, key.startsWith(prefix))))",
    "refusedNodeLabels": "variables.nodeLabels.filter(key, "
    f"!({setting('node_label_prefixes')}.exists(prefix, (key.contains('/') ? key.split('/')[0] : '') == prefix))"
    f" || {texts(OWNED_DOMAINS)}.exists(domain, key.startsWith(domain + '/') || key.contains('.' + domain + '/')))",
}
_PREFIXES: Final = "variables.prefixes.join(', ')"
_PARTITION: Final = "has(variables.workspace.resource) && has(variables.workspace.resource.partition)"

_DECLARED_PROVISIONER: Final = (
    f"(has(params.spec.provisioner) ? params.spec.provisioner : {setting('node_auto_provisioning')} == 'enabled'"
    " ? 'nodeclaim' : 'byo')"
)
_NAMED_MODE: Final = option("node-claim-provisioner", "nodeAutoProvisioning", "''")
_PROVISIONER: Final = option(
    "node-claim-provisioner",
    "provisioner",
    f"{_NAMED_MODE} == '' ? {_DECLARED_PROVISIONER} : {_NAMED_MODE} == 'enabled' ? 'nodeclaim' : 'byo'",
)

RULES: Final = (
    Rule(
        "workspace-instance-type",
        Family.MODE,
        "A Workspace has an instance type if nodes are provisioned, and none on existing (BYO) nodes, unless the "
        "Environment lets it narrow them.",
        "Set resource.instanceType if nodes are provisioned; remove it on existing (BYO) nodes, or set byoInstanceType "
        "of the Environment to narrow.",
        _WORKSPACES,
        _instance_types,
        options=ModeOptions,
        needs=Needs.MODE,
        cel=Cel(
            _SUBJECTS,
            f"{_provisioned('workspace-instance-type')} ? variables.instanceType != ''"
            f" : variables.instanceType == '' || {setting('byo_instance_type')} == 'narrow'"
            " && !object.apiVersion.startsWith('kaito.sh/')",
            {**_VARIABLES, **_mode_variables("workspace-instance-type")},
            f"{_provisioned('workspace-instance-type')} ? {quoted(INSTANCE_TYPE_REQUIRED)} : "
            + message(INSTANCE_TYPE_GIVEN, given="variables.instanceType"),
        ),
    ),
    Rule(
        "workspace-partition",
        Family.MODE,
        "A Workspace uses a part of a node only on existing (BYO) nodes.",
        "Remove resource.partition, or use existing (BYO) nodes.",
        _WORKSPACES,
        _partitions,
        options=ModeOptions,
        needs=Needs.MODE,
        cel=Cel(
            _SUBJECTS,
            f"!({_provisioned('workspace-partition')}) || !({_PARTITION})",
            {**_VARIABLES, **_mode_variables("workspace-partition")},
            quoted(PARTITION_FORBIDDEN),
        ),
    ),
    Rule(
        "workspace-selects-nodes",
        Family.MODE,
        "A Workspace of KAITO on existing (BYO) nodes selects them: an empty selector matches every node.",
        "Select the nodes with matchLabels or matchExpressions.",
        _WORKSPACES,
        _selectors,
        options=ModeOptions,
        needs=Needs.MODE,
        cel=Cel(
            (Subject.KAITO,),
            f"{_provisioned('workspace-selects-nodes')} || variables.instanceType != ''"
            " || size(variables.matchLabels) > 0 || size(variables.matchExpressions) > 0",
            {**_VARIABLES, **_mode_variables("workspace-selects-nodes")},
        ),
    ),
    Rule(
        "workspace-reserved-labels",
        Family.QUEUES,
        "A Workspace uses no reserved label.",
        "Use other labels in the selector and on the pods.",
        _WORKSPACES,
        _reserved,
        needs=Needs.ENVIRONMENT,
        cel=Cel(
            _SUBJECTS,
            "size(variables.reservedInSelector) == 0 && size(variables.reservedInTemplate) == 0",
            _RESERVED_VARIABLES,
            "size(variables.reservedInSelector) > 0 ? "
            + message(SELECTOR_RESERVED, keys="variables.reservedInSelector.join(', ')", prefixes=_PREFIXES)
            + " : "
            + message(TEMPLATE_RESERVED, keys="variables.reservedInTemplate.join(', ')", prefixes=_PREFIXES),
        ),
    ),
    Rule(
        "workspace-node-labels",
        Family.MODE,
        "A Workspace sets only labels on provisioned nodes that the Environment allows, and none of Kubernetes, "
        "Karpenter, schedulers or NVIDIA.",
        "Use other labels in the selector, or let nodeLabelPrefixes of the Environment allow their prefix.",
        ("Workspace",),
        _node_labels,
        options=ModeOptions,
        needs=Needs.MODE,
        cel=Cel(
            (Subject.WORKSPACES,),
            f"!({_provisioned('workspace-node-labels')}) || size(variables.refusedNodeLabels) == 0",
            {**_NODE_LABEL_VARIABLES, **_mode_variables("workspace-node-labels")},
            message(NODE_LABELS_REFUSED, keys="variables.refusedNodeLabels.join(', ')"),
        ),
    ),
    Rule(
        "workspace-ignored-field",
        Family.MODE,
        "A Workspace uses no deprecated field that is ignored.",
        "Select nodes with resource.labelSelector, and set their number with inference.replicas.",
        _WORKSPACES,
        _deprecated,
        severity=Severity.WARNING,
    ),
    Rule(
        "node-claim-provisioner",
        Family.MODE,
        "NodeClaims are declared only if the environment's provisioner is nodeclaim.",
        "Remove the NodeClaim, or set the provisioner to 'nodeclaim'.",
        ("NodeClaim",),
        _node_claims,
        options=ModeOptions,
        needs=Needs.MODE,
        cel=Cel(
            (Subject.NODE_CLAIMS,),
            "variables.provisioner == 'nodeclaim' || (has(object.metadata.ownerReferences)"
            " && object.metadata.ownerReferences.exists(each, each.kind == 'NodePool'))",
            {"provisioner": _PROVISIONER},
        ),
    ),
)

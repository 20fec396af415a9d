"""Labels, annotations and selectors of KAITO's objects; KAITO's own keys have no meaning in Plimsoll."""

from collections.abc import Mapping
from typing import Any, Final

from plimsoll.kaito.losses import Losses
from plimsoll.model.api import EnvironmentSpec
from plimsoll.text import shortlist

KAITO: Final = "kaito.sh/"
RESERVED: Final = frozenset(
    {
        *(f"kaito.sh/{key}" for key in ("workspace", "workspacenamespace", "ragengine", "ragenginenamespace")),
        *(f"karpenter.kaito.sh/{key}" for key in ("workspace-name", "workspace-namespace")),
        *(f"karpenter.kaito.sh/{key}" for key in ("inferenceset", "inferenceset-namespace")),
    }
)
"""Keys that KAITO removes from selectors (`api/v1beta1/labels.go`)."""
RUNTIME: Final = "kaito.sh/runtime"
LOAD_BALANCER: Final = "kaito.sh/enablelb"
_PREFIXES: Final = EnvironmentSpec().reserved_label_prefixes
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def kept_labels(given: Mapping[str, Any], where: str, losses: Losses) -> dict[str, Any]:
    """Labels or annotations without KAITO's own keys, each of which is reported."""
    kept = {key: value for key, value in given.items() if key != LAST_APPLIED and not _is_kaitos(key)}
    for key in sorted(filter(_is_kaitos, given)):
        if key == RUNTIME and given[key] != "vllm":
            losses.warn(
                f"{where}.{key}",
                f"presets are served by vLLM, not by {given[key]}",
                "check that vLLM can serve the model",
            )
        elif key == LOAD_BALANCER and given[key] == "True":
            losses.warn(
                f"{where}.{key}",
                "the Service is a ClusterIP",
                "declare a LoadBalancer that selects plimsoll.dev/workspace",
            )
        else:
            losses.warn(f"{where}.{key}", "it is specific to KAITO, and is not converted")
    return kept


def kept_selector(given: Mapping[str, Any], at: str, losses: Losses) -> dict[str, Any]:
    """The selector without the keys that KAITO removes too; refused if it has no others."""
    losses.unknown(given, ("matchLabels", "matchExpressions"), f"{at}.")
    labels = losses.object(given, "matchLabels", f"{at}.")
    expressions = losses.items(given, "matchExpressions", f"{at}.")
    taken = sorted(key for key in labels if _is_reserved(key))
    kept = {key: value for key, value in labels.items() if key not in taken}
    if taken and not kept and not expressions:
        losses.refuse(
            f"{at}.matchLabels",
            f"matchLabels must contain at least one non-reserved label, and has {shortlist(taken)} alone",
            "select the nodes by labels of your own",
        )
    elif taken:
        losses.warn(f"{at}.matchLabels", f"{shortlist(taken)} is reserved and removed, as in KAITO")
    expression_keys = {
        text for each in expressions if isinstance(each, Mapping) and isinstance(text := each.get("key"), str)
    }
    for field, keys in (("matchLabels", kept), ("matchExpressions", expression_keys)):
        ours = sorted(key for key in keys if isinstance(key, str) and key.startswith(_PREFIXES))
        if ours:
            losses.warn(
                f"{at}.{field}",
                f"{shortlist(ours)} is reserved by spec.reservedLabelPrefixes of the Environment by default",
                "select the nodes by labels of your own, or the Workspace is refused",
            )
    if expressions:
        losses.warn(
            f"{at}.matchExpressions",
            "KAITO ignores it; Plimsoll does not",
            "check that it matches the intended nodes",
        )
    made = {"matchLabels": kept, "matchExpressions": expressions}
    return {key: value for key, value in made.items() if value}


def _is_kaitos(key: str) -> bool:
    prefix = key.partition("/")[0] + "/"
    return prefix == KAITO or prefix.endswith(f".{KAITO}")


def _is_reserved(key: str) -> bool:
    return key in RESERVED or key.startswith(KAITO)

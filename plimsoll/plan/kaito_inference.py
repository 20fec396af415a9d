"""`inference` of a KAITO Workspace as ours has it."""

import copy
from collections.abc import Mapping
from typing import Any, Final

from plimsoll.model.pod_template import dig
from plimsoll.plan.kaito_labels import kept_labels
from plimsoll.plan.kaito_losses import Losses
from plimsoll.plan.presets import near, preset

_FIELDS: Final = {"preset", "template", "config", "adapters"}
_SOURCE: Final = ("name", "image", "imagePullSecrets", "volumeSource", "urls")


def converted_inference(inference: Mapping[str, Any], losses: Losses) -> dict[str, Any]:
    """The same under our names; what is refused is told to `losses`."""
    losses.unknown(inference, _FIELDS, "inference.")
    made: dict[str, Any] = {}
    if isinstance(inference.get("preset"), Mapping):
        made["preset"] = _preset(inference["preset"], losses)
    if isinstance(inference.get("template"), Mapping):
        made["template"] = _template(inference["template"], losses)
    if inference.get("config"):
        made["config"] = inference["config"]
        losses.warn(
            "inference.config",
            f"KAITO reads the key inference_config.yaml of ConfigMap {inference['config']}, here vllm.yaml is read",
            "put what stands under vllm: there into a key vllm.yaml of the same ConfigMap",
        )
    adapters = inference.get("adapters")
    if isinstance(adapters, list) and adapters:
        made["adapters"] = [_adapter(number, each, losses) for number, each in enumerate(adapters)]
    return made


def _preset(given: Mapping[str, Any], losses: Losses) -> dict[str, Any]:
    name = given.get("name")
    made: dict[str, Any] = {"name": name}
    if isinstance(name, str) and preset(name) is None:
        meant = near(name)
        losses.warn(
            "inference.preset.name",
            f"{name!r} is not known" + (f" (did you mean {' or '.join(meant)}?)" if meant else ""),
            "say what one replica needs by inference.gpuMemoryGiB, else the Workspace is refused",
        )
    if given.get("accessMode", "public") != "public":
        losses.warn(
            "inference.preset.accessMode",
            "presets are served by the Environment's inferenceImage, whoever may pull it",
            "name an image that the nodes may pull",
        )
    options = given.get("presetOptions") or {}
    for field in ("image", "imagePullSecrets"):
        if options.get(field):
            losses.warn(
                f"inference.preset.presetOptions.{field}",
                "KAITO's images with a model in them are not used: vLLM fetches the model from Hugging Face",
                "serve such an image by inference.template, or set inferenceImage of the Environment",
            )
    if options.get("modelAccessSecret"):
        made["presetOptions"] = {"modelAccessSecret": options["modelAccessSecret"]}
    return made


def _template(given: Mapping[str, Any], losses: Losses) -> dict[str, Any]:
    made = copy.deepcopy(dict(given))
    for field in ("labels", "annotations"):
        present = dig(given, f"metadata.{field}")
        if isinstance(present, Mapping):
            made["metadata"][field] = kept_labels(present, f"inference.template.metadata.{field}", losses)
    return made


def _adapter(number: int, given: Any, losses: Losses) -> dict[str, Any]:
    where = f"inference.adapters[{number}]"
    source = dig(given, "source") or {}
    if source.get("urls"):
        losses.refuse(f"{where}.source.urls", "adapters are not fetched from URLs", "use an image or a volumeSource")
    strength = dig(given, "strength")
    if strength not in (None, "") and not _is_one(strength):
        losses.warn(
            f"{where}.strength",
            f"{strength} is left out: vLLM serves adapters at full strength only",
            "scale the adapter's own weights",
        )
    return {"source": {key: source[key] for key in _SOURCE if source.get(key)}}


def _is_one(strength: Any) -> bool:
    try:
        return float(strength) == 1
    except (TypeError, ValueError):
        return False

"""Converts `inference` of a KAITO Workspace."""

import copy
from collections.abc import Mapping
from typing import Any, Final

from plimsoll.kaito.labels import kept_labels
from plimsoll.kaito.losses import Losses
from plimsoll.presets import ModelCatalog

_FIELDS: Final = {"preset", "template", "config", "adapters"}
_PRESET: Final = {"name", "accessMode", "presetOptions"}
_OPTIONS: Final = {"image", "imagePullSecrets", "modelAccessSecret"}
_SOURCE: Final = ("name", "image", "imagePullSecrets", "volumeSource", "urls")


def converted_inference(inference: Mapping[str, Any], at: str, losses: Losses) -> dict[str, Any]:
    """The converted field; `at` is its path with a trailing dot. Refusals are added to `losses`."""
    losses.unknown(inference, _FIELDS, at)
    made: dict[str, Any] = {}
    if inference.get("preset") is not None:
        made["preset"] = _preset(losses.object(inference, "preset", at), f"{at}preset.", losses)
    if inference.get("template") is not None:
        made["template"] = _template(losses.object(inference, "template", at), f"{at}template.", losses)
    if inference.get("config"):
        made["config"] = inference["config"]
        losses.warn(
            f"{at}config",
            f"KAITO reads the key inference_config.yaml of ConfigMap {inference['config']}, Plimsoll reads vllm.yaml",
            "copy the content of its field vllm to the key vllm.yaml of the same ConfigMap, its max-model-len to "
            "inference.contextLength, and its gpu-memory-utilization to estimator.utilization of the Environment",
        )
    adapters = losses.items(inference, "adapters", at)
    if adapters:
        made["adapters"] = [_adapter(f"{at}adapters[{n}]", each, losses) for n, each in enumerate(adapters)]
    return made


def _preset(given: Mapping[str, Any], at: str, losses: Losses) -> dict[str, Any]:
    losses.unknown(given, _PRESET, at)
    name = given.get("name")
    made: dict[str, Any] = {"name": name}
    known = ModelCatalog.builtin().find(name) if isinstance(name, str) else None
    if isinstance(name, str) and known is None:
        meant = ModelCatalog.builtin().near(name)
        losses.warn(
            f"{at}name",
            f"{name!r} is not known" + (f" (did you mean {' or '.join(meant)}?)" if meant else ""),
            "let modelHub of the Environment read it, or set inference.preset.parameters or inference.gpuMemoryGiB: "
            "else the Workspace is refused",
        )
    if given.get("accessMode", "public") != "public":
        losses.warn(
            f"{at}accessMode",
            "presets are served by spec.inferenceImage of the Environment",
            "set an image that the nodes may pull",
        )
    options = losses.object(given, "presetOptions", at)
    losses.unknown(options, _OPTIONS, f"{at}presetOptions.")
    for field in ("image", "imagePullSecrets"):
        if options.get(field):
            losses.warn(
                f"{at}presetOptions.{field}",
                "KAITO's images that contain a model are not used: vLLM downloads the model from Hugging Face",
                "serve such an image by inference.template, or set inferenceImage of the Environment",
            )
    if options.get("modelAccessSecret"):
        made["presetOptions"] = {"modelAccessSecret": options["modelAccessSecret"]}
    elif known is not None and known.gated:
        losses.warn(
            f"{at}presetOptions.modelAccessSecret",
            f"{name!r} is gated: Hugging Face gives {known.repository} only to those who accepted its license",
            "set it to a Secret with their token as HF_TOKEN: else the Workspace is refused",
        )
    return made


def _template(given: Mapping[str, Any], at: str, losses: Losses) -> dict[str, Any]:
    made = copy.deepcopy(dict(given))
    metadata = losses.object(given, "metadata", at)
    for field in ("labels", "annotations"):
        present = losses.object(metadata, field, f"{at}metadata.")
        if present:
            made["metadata"][field] = kept_labels(present, f"{at}metadata.{field}", losses)
    return made


def _adapter(where: str, given: Any, losses: Losses) -> dict[str, Any]:
    adapter = losses.object({"": given}, "", where)
    losses.unknown(adapter, ("source", "strength"), f"{where}.")
    source = losses.object(adapter, "source", f"{where}.")
    losses.unknown(source, _SOURCE, f"{where}.source.")
    if source.get("urls"):
        losses.refuse(f"{where}.source.urls", "adapters are not downloaded from URLs", "use an image or a volumeSource")
    strength = adapter.get("strength")
    if strength not in (None, "") and not _is_one(strength):
        losses.warn(
            f"{where}.strength",
            f"{strength} is not converted: vLLM serves adapters at full strength only",
            "scale the adapter's own weights",
        )
    return {"source": {key: source[key] for key in _SOURCE if source.get(key)}}


def _is_one(strength: Any) -> bool:
    try:
        return float(strength) == 1
    except (TypeError, ValueError):
        return False

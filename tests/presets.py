"""Presets of the built-in catalog that differ in what a test of the server's arguments could find."""

from plimsoll.presets import ModelCatalog, ModelPreset

_GPUS = 8


def _kind(preset: ModelPreset) -> tuple[object, ...]:
    """Options, cache by latents or by heads, how GPUs of a node can be used, several nodes, context, and license."""
    shape = preset.shape
    sizes = shape.tensor_sizes(_GPUS)
    return (
        tuple(sorted(preset.options.items())),
        shape.latent_dim is None,
        sizes,
        preset.spans_nodes,
        preset.context_limit is None or preset.context_limit < 32768,
        preset.gated,
    )


def presets_of_each_kind() -> list[str]:
    """The names of the smallest and the largest of each kind."""
    by_kind: dict[tuple[object, ...], list[ModelPreset]] = {}
    for preset in sorted(ModelCatalog.builtin().presets, key=lambda each: (each.size_gib, each.name)):
        by_kind.setdefault(_kind(preset), []).append(preset)
    return sorted({preset.name for alike in by_kind.values() for preset in (alike[0], alike[-1])})

"""`plimsoll estimate`: how many GPUs and nodes one replica of a model needs, and on which instance types."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from plimsoll.cli.shared import Format, Output, only_with, only_without
from plimsoll.cli.tables.estimate import (
    Model,
    Ranking,
    ranked,
    show_candidates,
    show_estimate,
    unranked,
)
from plimsoll.cluster.catalog import Catalog, UnknownInstanceTypeError
from plimsoll.cluster.profiles import mig_slice
from plimsoll.cost import UNPRICED, Prices
from plimsoll.errors import PlimsollError
from plimsoll.estimating import Infeasible, ModelNeed, Settings, estimate, settings_of
from plimsoll.logs import log_to_stderr
from plimsoll.model.api import Environment, EnvironmentSpec, ModelHub
from plimsoll.model.cluster import MIB_PER_GIB, Device, InvalidFigureError, check_figure, product_words
from plimsoll.presets import ModelCatalog, catalog_of, declared_preset
from plimsoll.text import did_you_mean

app = typer.Typer(add_completion=False)


@app.command()
def command(
    ctx: typer.Context,
    model: Annotated[
        str | None, typer.Argument(help="a preset's name, or a path to a Hugging Face config.json or its folder")
    ] = None,
    *,
    instance_type: Annotated[
        str | None, typer.Option("--instance-type", "-t", help="instance type to estimate for [lists all that fit]")
    ] = None,
    context_length: Annotated[
        int | None,
        typer.Option(help="tokens that are served and must fit [the longest that fits, at least 2048]"),
    ] = None,
    utilization: Annotated[
        list[str] | None,
        typer.Option(
            help="fraction of a GPU's memory to use, such as 0.9, or H100=0.92 for one product; can be repeated"
        ),
    ] = None,
    overhead_gib: Annotated[
        float | None, typer.Option(help="GiB of each GPU in addition to model and KV cache [2.3]")
    ] = None,
    activation_factor: Annotated[
        float | None, typer.Option(help="factor for activations on a GPU's share of the weights [1.05]")
    ] = None,
    weight_factor: Annotated[
        float | None, typer.Option(help="weights in memory, as a multiple of their files [1.02]")
    ] = None,
    kv_value_bytes: Annotated[
        float | None, typer.Option(help="bytes of one cached value: 1 for a KV cache in fp8 [2]")
    ] = None,
    size_gib: Annotated[float | None, typer.Option(help="the model's weights as files, GiB")] = None,
    bytes_per_token: Annotated[float | None, typer.Option(help="KV cache of one token over all layers, bytes")] = None,
    one_node: Annotated[
        bool | None, typer.Option("--one-node/--spans-nodes", help="whether a replica must fit one node [the preset's]")
    ] = None,
    gpu_memory_gib: Annotated[float | None, typer.Option(help="memory of ONE GPU, GiB, instead of a type")] = None,
    gpus_per_node: Annotated[int | None, typer.Option(help="GPUs of one node, instead of a type [1]")] = None,
    mig_profile: Annotated[str | None, typer.Option(help="one MIG slice, such as 3g.40gb, instead of a type")] = None,
    cloud: Annotated[list[str] | None, typer.Option(help="list types of this cloud only: aws, azure, gcp, arc")] = None,
    aws_region: Annotated[
        str | None, typer.Option(help="query the EC2 API of this region for its instance types")
    ] = None,
    prices: Annotated[Path | None, typer.Option(help="CSV file with name,price_per_hour to rank types by")] = None,
    by: Annotated[
        Ranking, typer.Option(help="what the table of types is ordered by: price, or price for the tokens of KV cache")
    ] = Ranking.PRICE,
    recommend: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=16,
            help="write the `resource` of a Workspace that tries the first N types of the table, of one cloud",
        ),
    ] = None,
    presets: Annotated[
        Path | None, typer.Option(help="YAML file with further presets, as in `presets` of an Environment")
    ] = None,
    hub: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="read an unknown ORG/NAME from this hub, such as https://huggingface.co [modelHub of the Environment]",
        ),
    ] = None,
    file: Annotated[
        list[str] | None,
        typer.Option(
            "--file", "-f", metavar="FILE_OR_DIR", help="use the settings of the Environment in these manifests"
        ),
    ] = None,
    output: Output = Format.TEXT,
) -> None:
    """Estimate the GPUs and nodes that one replica of a model needs, line by line; nothing is created.

    Exit code 0: it fits; 2: it does not fit, with the reason; 1: an error.
    """
    only_with(ctx, "model", "hub", "presets")
    only_without(ctx, "instance_type", "cloud", "by", "recommend")
    for explicit in ("gpu_memory_gib", "mig_profile"):
        only_without(ctx, explicit, "cloud", "by", "aws_region", "prices", "recommend")
    log_to_stderr()
    environment = _environment(file or [])
    models = _models(environment, presets)
    given = {
        "overhead_gib": overhead_gib,
        "activation_factor": activation_factor,
        "weight_factor": weight_factor,
        "kv_value_bytes": kv_value_bytes,
    }
    settings = _settings(settings_of(environment.estimator), given, utilization or [])
    if model is not None and models.find(model) is None:
        models = _with_hub_model(models, model, environment, hub)
    subject = _model(models, model, size_gib, bytes_per_token, one_node)
    gpus = _explicit_gpus(gpu_memory_gib, gpus_per_node, mig_profile)
    if gpus is not None and instance_type is not None:
        raise PlimsollError("--instance-type and explicit GPUs exclude each other", "remove one of them")
    over = _over_limit(subject, context_length)
    warnings: list[str] = []
    kind, basis = None, UNPRICED
    if gpus is not None:
        _require_match(utilization or [], [gpus.product])
    else:
        catalog, catalog_warnings = _catalog(environment, aws_region, prices)
        warnings += catalog_warnings
        _require_match(utilization or [], [each.product for each in catalog.types])
        known = Prices.of_types(catalog.types, environment.catalog.currency)
        if instance_type is None:
            clouds = _clouds(cloud or [], catalog)
            found = catalog.feasible(subject.need, settings, context_length=context_length, clouds=clouds)
            candidates = () if over else ranked(found, by)
            warnings += [each for each in (unranked(subject, candidates, by), subject.unknown(context_length)) if each]
            basis = known.basis(each.type.name for each in candidates)
            show_candidates(
                subject, candidates, warnings, output, by=by, basis=basis, why_none=over, recommend=recommend
            )
            return
        other = catalog.other_vendor(instance_type)
        if other:
            raise PlimsollError(f"{instance_type} has {other}, and only NVIDIA GPUs are supported", "name another type")
        kind = catalog.lookup(instance_type)
        if kind is None:
            raise UnknownInstanceTypeError(instance_type, catalog.near(instance_type))
        gpus, basis = kind.node_gpus, known.basis([kind.name])
        if gpus is None:
            raise PlimsollError(
                f"the memory of a GPU of {kind.name} is not known ({kind.describe_gpus()})",
                "set --gpu-memory-gib and --gpus-per-node instead of the type",
            )
    outcome = estimate(subject.need, gpus, settings, context_length)
    if over:
        outcome = Infeasible(over, outcome.lines, outcome.min_gpus, outcome.nodes)
    show_estimate(subject, gpus, kind, outcome, warnings=warnings, output=output, basis=basis)


def _environment(files: list[str]) -> EnvironmentSpec:
    """The Environment of the manifests, or the defaults."""
    if not files:
        return EnvironmentSpec()
    from plimsoll.observe.files import snapshot_from_files

    environment = snapshot_from_files(files).environment
    if environment == Environment.default():
        raise PlimsollError(
            f"{', '.join(files)}: no Environment with settings", "name the file of the Environment, or leave out -f"
        )
    return environment.spec


def _settings(declared: Settings, given: Mapping[str, float | None], utilization: list[str]) -> Settings:
    """The declared settings, with the command line's on top."""
    shares: dict[str, float] = {}
    for text in utilization:
        product, _, share = text.rpartition("=")
        try:
            shares[product.strip()] = float(share)
        except ValueError:
            raise InvalidFigureError(
                f"utilization {text!r} is not a number", "set a fraction such as 0.9, or H100=0.92 for one product"
            ) from None
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if "" in shares:
        changes["utilization"] = shares.pop("")
    by_product = {**declared.utilization_by_product, **shares}
    return replace(declared, **changes, utilization_by_product=by_product)


def _require_match(utilization: list[str], products: Iterable[str]) -> None:
    """Raises PlimsollError for the utilization of a product that none of the GPUs is."""
    words = [product_words(each) for each in products if each]
    for text in utilization:
        product = text.rpartition("=")[0].strip()
        if product and not any(product_words(product) <= each for each in words):
            raise PlimsollError(
                f"--utilization {text}: no GPU of the estimate is {product!r}",
                "name a product as in `plimsoll estimate MODEL`, or set the fraction alone"
                if words
                else "the product is not known: set the fraction alone",
            )


def _models(environment: EnvironmentSpec, file: Path | None) -> ModelCatalog:
    """The built-in presets, with those of the Environment and of a file on top."""
    models = catalog_of(environment.presets)
    if file is None:
        return models
    from plimsoll.observe.files import read_preset_file

    return models.with_presets(read_preset_file(file))


def _with_hub_model(models: ModelCatalog, name: str, environment: EnvironmentSpec, url: str | None) -> ModelCatalog:
    """The models, with the one of that name where there is a hub and nothing of that name on this machine."""
    hub = environment.model_hub
    if url is not None:
        try:
            hub = ModelHub(endpoint=url)
        except ValidationError:
            raise PlimsollError(f"--hub {url!r} is not a URL", "use a URL such as https://huggingface.co") from None
    if hub is None or Path(name).expanduser().exists():
        return models
    from plimsoll.observe.hub_models import is_repository
    from plimsoll.observe.model_hub import read_hub_model

    if not is_repository(name):
        return models
    return models.with_presets([declared_preset(read_hub_model(hub, name, os.environ.get("HF_TOKEN", "")))])


def _model(
    models: ModelCatalog, name: str | None, size: float | None, token: float | None, one_node: bool | None
) -> Model:
    """The given preset, files or figures; figures take precedence over those of a preset or of files."""
    if name is None:
        if size is None or token is None:
            given = {"--size-gib": size, "--bytes-per-token": token}
            missing = [option for option, value in given.items() if value is None]
            raise PlimsollError(
                f"{missing[0]} is missing" if len(missing) == 1 else "no model is given",
                "set a preset or a config.json, or --size-gib and --bytes-per-token",
            )
        return Model("the model", ModelNeed(size, token, spans_nodes=not one_node), "figures of the options")
    known = models.find(name)
    if known is not None:
        spans = known.spans_nodes if one_node is None else not one_node
        need = ModelNeed(
            known.size_gib if size is None else size,
            known.bytes_per_token if token is None else token,
            spans_nodes=spans,
            shape=known.shape if token is None else None,
        )
        return Model(known.name, need, known.source)
    why = models.why_not(name)
    if why:
        raise PlimsollError(f"preset {name!r} is not known, and {why}")
    path = Path(name).expanduser()
    if not path.exists():
        near = did_you_mean(models.near(name)) or "set a preset, or the path of a model's config.json."
        raise PlimsollError(
            f"{name!r} is neither a preset nor an existing file or folder",
            f"{near} Of a model that is newer than the catalog, --hub reads ORG/NAME from a hub",
        )
    return _from_files(path, size, token, one_node)


def _from_files(path: Path, size: float | None, token: float | None, one_node: bool | None) -> Model:
    from plimsoll.observe.files import read_model_files

    files = read_model_files(path)
    weights = files.size_gib if size is None else size
    if weights is None:
        raise PlimsollError(
            f"{path}: the size is not known: no safetensors index or files are next to the config",
            "set --size-gib, the size of the weight files in GiB",
        )
    shape = files.shape if token is None else None
    need = ModelNeed(weights, files.shape.bytes_per_token if token is None else token, not one_node, shape)
    return Model(files.name, need, f"{files.shape}; size from {files.size_source or 'the option'}")


def _over_limit(model: Model, context_length: int | None) -> str:
    """Why no server of the model serves that context; empty where one does."""
    limit = model.need.shape.context_limit if model.need.shape is not None else None
    if context_length is None or limit is None or context_length <= limit:
        return ""
    return f"{model.name} supports at most {limit} tokens, and the context length is {context_length}"


def _explicit_gpus(memory_gib: float | None, per_node: int | None, mig_profile: str | None) -> Device | None:
    if mig_profile is not None:
        if memory_gib is not None or per_node is not None:
            raise PlimsollError("--mig-profile already sets the memory", "remove --gpu-memory-gib and --gpus-per-node")
        return mig_slice(mig_profile)
    if memory_gib is None:
        if per_node is not None:
            raise PlimsollError("--gpus-per-node needs the memory of one GPU", "add --gpu-memory-gib")
        return None
    check_figure("memory of one GPU (MiB)", memory_gib * MIB_PER_GIB)
    return Device("", int(memory_gib * MIB_PER_GIB), 1 if per_node is None else per_node)


def _catalog(environment: EnvironmentSpec, aws_region: str | None, prices: Path | None) -> tuple[Catalog, list[str]]:
    """The built-in catalog with the options' types and prices on top, and warnings about them."""
    catalog, warnings = Catalog.builtin(), []
    region = aws_region or environment.catalog.aws_region
    if region is not None:
        from plimsoll import home
        from plimsoll.observe.ec2 import ec2_types

        live = ec2_types(home.instance_types(), datetime.now(UTC), region)
        catalog = catalog.with_types(live.types)
        warnings = [*live.warnings, *map(str, catalog.differences)]
    catalog = catalog.with_discount(environment.catalog.discount_percent)
    own = dict(environment.catalog.prices)
    if prices is not None:
        from plimsoll.observe.files import read_prices

        own |= read_prices(prices)
    if own:
        catalog = catalog.with_own_prices(own, environment.catalog.currency)
    return catalog, warnings


def _clouds(wanted: list[str], catalog: Catalog) -> set[str] | None:
    known = {each.cloud for each in catalog.types}
    for cloud in wanted:
        if cloud.casefold() not in known:
            raise PlimsollError(
                f"no instance type of cloud {cloud!r} is known", f"use one of {', '.join(sorted(known))}"
            )
    return {cloud.casefold() for cloud in wanted} or None

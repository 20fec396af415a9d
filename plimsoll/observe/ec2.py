"""AWS's GPU instance types of a region from the EC2 API, stored in a file.

Needs the permission `ec2:DescribeInstanceTypes`. Only this API has the types of a region. Its names of GPUs are not
those of labels, and its memory of a GPU is not what the driver reports, though some figures are equal:
https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_GpuInfo.html
"""

import os
import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog
from botocore.exceptions import BotoCoreError, ClientError
from pydantic import BaseModel, ConfigDict, ValidationError

from plimsoll.errors import PlimsollError
from plimsoll.model.cluster import InstanceType
from plimsoll.observe.aws import CONFIG, AwsError, error_text, explained, region_of, session

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

LOG: Final = structlog.get_logger(__name__)

MAX_AGE: Final = timedelta(days=7)
"""AWS adds instance types a few times a year."""
_PAGE: Final = 100
_ARCHITECTURES: Final = {"x86_64": "amd64", "arm64": "arm64"}
"""The label `kubernetes.io/arch` by the API's names."""
_FAMILIES: Final = ["g*", "p*"]
"""AWS's families with NVIDIA and AMD GPUs. The API has no filter for GPUs, and a region has over a thousand types."""


class Ec2Types(BaseModel):
    """The instance types of one region at one time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    region: str
    fetched_at: datetime
    types: tuple[InstanceType, ...]
    warnings: tuple[str, ...] = ()
    """Types that were left out, and why an old answer is used."""

    def age(self, now: datetime) -> timedelta:
        return now - self.fetched_at


def ec2_types(folder: Path, now: datetime, region: str | None = None, max_age: timedelta = MAX_AGE) -> Ec2Types:
    """The instance types of a region (argument, else the AWS configuration): stored ones up to the age `max_age`, else
    from the API.

    If the API does not answer, stored ones of any age are used, with a warning. `folder` is created if it is missing;
    `now` has a time zone. Raises AwsError.
    """
    aws = session()
    name = region_of(aws, region)
    file = folder / f"instance-types-{name}.json"
    kept = _kept(file, name)
    if kept is not None and timedelta(0) <= kept.age(now) <= max_age:
        return kept
    try:
        fresh = describe_types(aws.client("ec2", region_name=name, config=CONFIG), name, now)
    except (BotoCoreError, ClientError) as error:
        if kept is None:
            raise AwsError(
                f"the EC2 API in {name} did not list its instance types: {error_text(error)}",
                explained(error, "ec2:DescribeInstanceTypes", "the built-in table needs neither"),
            ) from None
        warning = (
            f"EC2 in {name} did not answer ({error_text(error)}): types as of {kept.fetched_at:%Y-%m-%d %H:%M} UTC"
        )
        return kept.model_copy(update={"warnings": (*kept.warnings, warning)})
    _keep(file, fresh)
    return fresh


def describe_types(client: "EC2Client", region: str, now: datetime) -> Ec2Types:
    """Requests the region's types with GPUs, page by page. Raises botocore's errors."""
    types: dict[str, InstanceType] = {}
    warnings = []
    pages = client.get_paginator("describe_instance_types").paginate(
        Filters=[{"Name": "instance-type", "Values": _FAMILIES}], PaginationConfig={"PageSize": _PAGE}
    )
    for page in pages:
        for item in page["InstanceTypes"]:
            if not item.get("GpuInfo"):
                continue
            read = _read(item, region)
            if isinstance(read, InstanceType):
                types[read.name] = read
            else:
                warnings.append(read)
    return Ec2Types(
        region=region, fetched_at=now, types=tuple(types[name] for name in sorted(types)), warnings=warnings
    )


def _read(item: Mapping[str, Any], region: str) -> InstanceType | str:
    """The instance type, or why it is left out."""
    name = str(item.get("InstanceType"))
    devices = item["GpuInfo"].get("Gpus") or []
    if len(devices) != 1:
        return f"{name}: skipped, because it has {len(devices)} kinds of GPUs"
    device = devices[0]
    # A fraction of a GPU has 0 GPUs and 1 logical GPU, with the memory of the fraction.
    count = device.get("LogicalGpuCount") or device.get("Count") or 0
    memory = (device.get("MemoryInfo") or {}).get("SizeInMiB") or 0
    if count < 1 or memory < 1:
        return f"{name}: skipped, because its GPUs ({count}) or their memory ({memory} MiB) are not known"
    return InstanceType(
        name=name,
        cloud="aws",
        gpus=count,
        gpu_memory_mib=memory,
        product=f"{device.get('Manufacturer', '')} {device.get('Name', '')}".strip() or "unknown",
        vcpus=(item.get("VCpuInfo") or {}).get("DefaultVCpus"),
        memory_mib=(item.get("MemoryInfo") or {}).get("SizeInMiB"),
        arch=_arch(item.get("ProcessorInfo") or {}),
        disk_gib=_disk_gib(item.get("InstanceStorageInfo") or {}),
        max_pods=_max_pods(item.get("NetworkInfo") or {}),
        api_gpu_name=device.get("Name", ""),
        api_gpu_memory_mib=memory,
        karpenter_gpus=device.get("Count"),
        source=f"EC2 in {region}",
    )


def _arch(processor: Mapping[str, Any]) -> str:
    known = (_ARCHITECTURES.get(each, "") for each in processor.get("SupportedArchitectures") or ())
    return next(filter(None, known), "")


def _disk_gib(storage: Mapping[str, Any]) -> float:
    """Of NVMe disks; the API counts in gigabytes."""
    nvme = storage.get("NvmeSupport", "unsupported") != "unsupported"
    return round(storage.get("TotalSizeInGB", 0) * 1000**3 / 1024**3, 1) if nvme else 0.0


def _max_pods(network: Mapping[str, Any]) -> int | None:
    """As in `eni-max-pods.txt` of EKS's AMIs: an address for each pod on the interfaces of the default network card,
    whose own are not for pods, and two pods of the host's network. None if it is not known."""
    default = network.get("DefaultNetworkCardIndex") or 0
    cards = [each for each in network.get("NetworkCards") or () if each.get("NetworkCardIndex") == default]
    interfaces = (cards[0] if cards else network).get("MaximumNetworkInterfaces")
    addresses = network.get("Ipv4AddressesPerInterface")
    return interfaces * (addresses - 1) + 2 if interfaces and addresses else None


def _kept(file: Path, region: str) -> Ec2Types | None:
    """The types that an earlier run stored; None if there are none that can be read."""
    try:
        kept = Ec2Types.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError, PlimsollError) as error:
        LOG.warning("cannot read cached EC2 types, querying again", file=str(file), error=type(error).__name__)
        return None
    return kept if kept.region == region and kept.fetched_at.tzinfo is not None else None


def _keep(file: Path, types: Ec2Types) -> None:
    """Replaces the file atomically. If the folder is not writable, the next run asks the API again."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_text(types.model_dump_json(), "utf-8")
            temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        LOG.warning("cannot cache EC2 types", file=str(file), error=error.strerror)

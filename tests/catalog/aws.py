"""Responses of the EC2 API."""

from typing import Any

from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders


def a_device(count: int = 1, mib: int = 24576, name: str = "L4", **more: Any) -> dict[str, Any]:
    return {"Name": name, "Manufacturer": "NVIDIA", "Count": count, "MemoryInfo": {"SizeInMiB": mib}, **more}


def an_item(name: str, *devices: dict[str, Any]) -> dict[str, Any]:
    return {"InstanceType": name, "VCpuInfo": {"DefaultVCpus": 4}, "GpuInfo": {"Gpus": list(devices)}}


class Requests:
    """Responds in place of EC2 with one type of 8 GPUs. Counts the requests by region, and fails on demand."""

    def __init__(self) -> None:
        self.regions: list[str] = []
        self.failure: Exception | None = None
        self.items = [an_item("p5.48xlarge", a_device(8, 81920, "H100"))]

    def watch(self, client: Any) -> Any:
        client.meta.events.register_first("before-call.ec2.*", lambda **_: self.answer(client.meta.region_name))
        return client

    def answer(self, region: str) -> tuple[AWSResponse, dict[str, Any]]:
        self.regions.append(region)
        if self.failure is not None:
            raise self.failure
        return AWSResponse("", 200, HTTPHeaders(), None), {"InstanceTypes": self.items}

"""Dynamic Resource Allocation (`resource.k8s.io/v1`): devices that drivers publish, and claims of them."""

from plimsoll.model.dra.attribute import Attribute, qualified
from plimsoll.model.dra.claim_request import ClaimedDevices, ClaimRequest, DeviceRequest, Subrequest
from plimsoll.model.dra.claim_template_spec import ResourceClaimTemplateSpec
from plimsoll.model.dra.device_class import DeviceClass
from plimsoll.model.dra.device_class_spec import DeviceClassSpec
from plimsoll.model.dra.published import (
    GPU_DRIVERS,
    NOTHING_PUBLISHED,
    WHOLE_GPUS,
    Claimable,
    DevicePart,
    Placements,
    Published,
    SharedDevice,
    groups_of,
)
from plimsoll.model.dra.request_policy import RequestPolicy, ValidRange
from plimsoll.model.dra.resource_claim import Allocated, PodClaim, ResourceClaim, ResourceClaimTemplate
from plimsoll.model.dra.resource_slice import ResourceSlice, SliceDevice

__all__ = [
    "GPU_DRIVERS",
    "NOTHING_PUBLISHED",
    "WHOLE_GPUS",
    "Allocated",
    "Attribute",
    "ClaimRequest",
    "Claimable",
    "ClaimedDevices",
    "DeviceClass",
    "DeviceClassSpec",
    "DevicePart",
    "DeviceRequest",
    "Placements",
    "PodClaim",
    "Published",
    "RequestPolicy",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceClaimTemplateSpec",
    "ResourceSlice",
    "SharedDevice",
    "SliceDevice",
    "Subrequest",
    "ValidRange",
    "groups_of",
    "qualified",
]

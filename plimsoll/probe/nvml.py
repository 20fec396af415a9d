"""GPUs by NVML (the extra `nvml`: nvidia-ml-py). Opening NVML also makes the driver write the UUIDs to its files."""

from typing import Any

from plimsoll.probe.driver import DriverGPUs


def look_by_nvml() -> DriverGPUs | None:
    """The GPUs that NVML shows; None if the bindings or the library are missing."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        return _look(pynvml)
    finally:
        pynvml.nvmlShutdown()


def _look(nvml: Any) -> DriverGPUs:
    uuids, unreadable, partitioned = [], [], False
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            device = nvml.nvmlDeviceGetHandleByIndex(index)
            uuids.append(_text(nvml.nvmlDeviceGetUUID(device)))
            partitioned = partitioned or _is_partitioned(nvml, device)
        except nvml.NVMLError as error:
            unreadable.append(f"GPU {index}: {error}")
    return DriverGPUs(tuple(sorted(uuids)), tuple(unreadable), partitioned)


def _is_partitioned(nvml: Any, device: Any) -> bool:
    try:
        current, _pending = nvml.nvmlDeviceGetMigMode(device)
    except nvml.NVMLError:  # GPUs without MIG support
        return False
    return bool(current == nvml.NVML_DEVICE_MIG_ENABLE)


def _text(value: Any) -> str:
    """Old releases of the bindings return bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)

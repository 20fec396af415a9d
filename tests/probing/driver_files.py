"""The files of NVIDIA's driver as its releases write them, below a folder that stands for the root."""

from pathlib import Path

UUID = "GPU-5a1d4d5e-0b5f-8f1c-93a4-2d0a6f1c7e11"
OTHER = "GPU-c7d0a2b1-44ee-1f0b-7d12-9a8b7c6d5e4f"
UNOPENED = "GPU-????????-????-????-????-????????????"

R418 = """Model: \t\t Tesla V100-SXM2-16GB
IRQ:   \t\t 31
GPU UUID: \t {uuid}
Video BIOS: \t 88.00.4f.00.09
Bus Type: \t PCIe
DMA Size: \t 47 bits
DMA Mask: \t 0x7fffffffffff
Bus Location: \t 0000:00:1e.0
Device Minor: \t 0
"""
R450 = """Model: \t\t A100-SXM4-40GB
IRQ:   \t\t 216
GPU UUID: \t {uuid}
Video BIOS: \t 92.00.19.00.10
Bus Type: \t PCIe
DMA Size: \t 47 bits
DMA Mask: \t 0x7fffffffffff
Bus Location: \t 0000:07:00.0
Device Minor: \t 0
Blacklisted:\t No
"""
R570 = """Model: \t\t NVIDIA H100 80GB HBM3
IRQ:   \t\t 423
GPU UUID: \t {uuid}
Video BIOS: \t 96.00.99.00.01
Bus Type: \t PCIe
DMA Size: \t 52 bits
DMA Mask: \t 0xfffffffffffff
Bus Location: \t 0000:18:00.0
Device Minor: \t 3
GPU Firmware: \t 570.124.06
GPU Excluded:\t No
"""
R580 = """Model: \t\t NVIDIA H200
IRQ:   \t\t 41
GPU UUID: \t {uuid}
Video BIOS: \t 96.00.a5.00.1a
Bus Type: \t PCIe
DMA Size: \t 52 bits
DMA Mask: \t 0xfffffffffffff
Bus Location: \t 0000:00:06.0
Device Minor: \t 0
GPU Firmware: \t 580.159.04
GPU Excluded:\t No
"""
RELEASES = {"418": R418, "450": R450, "570": R570, "580": R580}


def a_gpu(root: Path, uuid: str = UUID, address: str = "0000:07:00.0", release: str = R570) -> Path:
    """Writes the `information` of one GPU; returns its file."""
    folder = root / "proc/driver/nvidia/gpus" / address
    folder.mkdir(parents=True)
    file = folder / "information"
    file.write_text(release.format(uuid=uuid))
    return file


def a_device(root: Path, minor: int) -> None:
    """The device files of a container that has this GPU."""
    (root / "dev").mkdir(exist_ok=True)
    for name in (f"nvidia{minor}", "nvidiactl", "nvidia-uvm"):
        (root / "dev" / name).touch()


def a_mig_instance(root: Path, minor: int = 0) -> None:
    """What the container toolkit mounts for a slice."""
    folder = root / f"proc/driver/nvidia/capabilities/gpu{minor}/mig/gi7"
    folder.mkdir(parents=True)
    (folder / "access").write_text("DeviceFileMinor: 66\nDeviceFileMode: 292\nDeviceFileModify: 1\n")

"""GPUs as bars: in the terminal and as SVG."""

from plimsoll.cli.picture.bars import GpuBar, NodeBars, Part, Segment, gpu_picture, gpu_rows
from plimsoll.cli.picture.plot import print_picture
from plimsoll.cli.picture.svg import as_html, as_svg

__all__ = [
    "GpuBar",
    "NodeBars",
    "Part",
    "Segment",
    "as_html",
    "as_svg",
    "gpu_picture",
    "gpu_rows",
    "print_picture",
]

"""GPUs as bars: in the terminal and as SVG."""

"""What pods request of GPUs, and where they run."""

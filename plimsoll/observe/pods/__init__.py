"""What is kept of the manifests of pods."""

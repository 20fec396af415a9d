"""What runs in a reservation: finds the one GPU that its pod was given, and writes the UUID on the pod.

Imports little, so that it starts at once on any node: no Kubernetes client, no models.
"""

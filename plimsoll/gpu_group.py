"""GPU groups: keys that share pods and reservations carry. Imports nothing, so that the probe starts at once."""

from typing import Final

GPU_GROUP: Final = "runai-gpu-group"
"""Label of a share pod and of the reservation of its GPU: the group's name."""
GPU_GROUP_PREFIX: Final = f"{GPU_GROUP}/"
"""Labels of a pod with shares of several GPUs: the prefix and a group's name, for each; the value is the name."""
RESERVED_GPU: Final = "run.ai/reserve_for_gpu_index"
"""Annotation of a reservation: the UUID of its GPU, whatever the key says."""
UNKNOWN_GPU: Final = "-1"
"""Stands for a UUID that did not come in time."""
SELECTED_NODE: Final = "plimsoll.dev/selected-node"
"""Annotation of a share pod that is about to be bound, as `node/uid`: the node where its groups' reservations are or
will be, and the pod's UID, so that a copy of the pod claims nothing."""
VISIBLE_DEVICES: Final = "plimsoll.dev/visible-devices"
"""Annotation of a bound share pod: the UUIDs of its GPUs, by commas, in the order of its groups' names."""
GPU_PORTION: Final = "plimsoll.dev/gpu-portion"
"""Annotation of a bound share pod: its part of each GPU, such as `0.5`."""

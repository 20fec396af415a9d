"""KAI's API: Queue, PodGroup, GPU shares and reservations."""

"""How many GPUs and nodes one replica of a model needs."""

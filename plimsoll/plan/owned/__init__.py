"""Objects that the engine made: their names, labels, owners and progress."""

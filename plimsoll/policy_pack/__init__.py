"""The policy pack: what no preview and no update of a stack may declare."""

"""What a new node of a NodePool would offer."""

"""What is allocated and free of every GPU of every node."""

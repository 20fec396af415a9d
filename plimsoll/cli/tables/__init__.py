"""What commands print: one module for each command, so that a command loads only its own."""

"""One way to speak to an apiserver."""

"""What the share binder does next, as functions of nodes and pods."""

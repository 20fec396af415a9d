"""GPU capacity that unschedulable pods need and the cluster lacks."""

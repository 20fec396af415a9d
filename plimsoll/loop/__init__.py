"""The loop: observe, validate, plan, apply, report."""

"""What live nodes offer: GFD labels, MIG, selectors, taints."""

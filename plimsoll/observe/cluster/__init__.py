"""One cluster by list and watch: a Snapshot of what it holds now."""

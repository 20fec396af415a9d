"""Policies: one set of rules on manifests, enforced by the pack, the loop, the cluster and `plimsoll policy check`.

Pure, as `plimsoll.plan` is: the date and everything else that a rule judges by come in as arguments.
"""

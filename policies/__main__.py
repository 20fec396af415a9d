"""The engine runs this in a process of its own; see `plimsoll.policy_pack`."""

from plimsoll.policy_pack import pack

pack()

"""The policy pack: Plimsoll's rules, listed by `plimsoll policy list`."""

from plimsoll.policy_pack import pack

pack()

"""The engine runs this in a process of its own; see `policies.pack`."""

from policies.pack import pack

pack()

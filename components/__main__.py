"""The component package: Pulumi programs of any language use `plimsoll:index:Workspace` and its siblings from here."""

from pulumi.provider.experimental import component_provider_host

from plimsoll.components import PACKAGED

component_provider_host(name="plimsoll", components=PACKAGED)

"""The component package: Pulumi programs of any language use `plimsoll:index:Workspace` and its siblings from here."""

from plimsoll.components import PACKAGED, serve

if __name__ == "__main__":
    serve(PACKAGED)

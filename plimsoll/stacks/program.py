"""The Pulumi program of every stack; the configuration selects the layer."""

import pulumi

from plimsoll.errors import PlimsollError
from plimsoll.stacks import environment, foundation, objects
from plimsoll.stacks.settings import given, settings_of, with_secrets


def run() -> None:
    """Declares the stack's layer. A configuration error ends the program with its message, without a traceback."""
    try:
        values = given()
        settings = settings_of(values)
        if settings.layer == "foundation":
            foundation.declare(settings, with_secrets(values))
        elif settings.layer == "environment":
            environment.declare(settings, with_secrets(values))
        else:
            objects.declare(settings, with_secrets(values))
    except PlimsollError as error:
        raise pulumi.RunError(str(error)) from None

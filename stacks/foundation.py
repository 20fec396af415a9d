"""The foundation: the kinds, the controller's account, the guard."""

import pulumi

from components.foundation import Foundation


def declare() -> None:
    foundation = Foundation("plimsoll", {})
    pulumi.export("namespace", foundation.namespace)
    pulumi.export("serviceAccount", foundation.service_account)

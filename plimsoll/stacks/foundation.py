"""The foundation stack: CRDs, the controller's service account, deletion protection."""

import pulumi

from plimsoll.components import Foundation
from plimsoll.stacks.settings import Settings


def declare(settings: Settings) -> None:
    foundation = Foundation("plimsoll", {"trigger_namespace": settings.trigger_namespace})
    pulumi.export("namespace", foundation.namespace)
    pulumi.export("serviceAccount", foundation.service_account)

"""Messages of components about refused arguments and training runtimes."""

from typing import Any

import yaml

from tests.components.refused import REFUSED
from tests.training_runtimes import runtimes


def messages() -> dict[str, Any]:
    refused = {
        f"{each.kind} {yaml.safe_dump(dict(each.args), default_flow_style=True, width=1000).strip()}": each.message()
        for each in REFUSED
    }
    contradictions = {
        f"TrainingRuntime: {name}": runtimes.refusal(declared) for name, (declared, _) in runtimes.REFUSED.items()
    }
    return refused | contradictions

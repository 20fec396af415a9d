"""PolicyConfig: the file that `plimsoll policy check --config` reads."""

from plimsoll.model.api.environment import EnvironmentSpec
from plimsoll.model.api.policies import Policies


class PolicyConfig(Policies):
    """Settings of the rules, and the environment of the objects."""

    environment: EnvironmentSpec | None = None
    """Absent: the Environment among the objects; without one, rules that depend on it are skipped."""

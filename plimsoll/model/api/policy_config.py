"""PolicyConfig: the file that `plimsoll policy check --config` reads."""

from plimsoll.model.api.environment import EnvironmentSpec
from plimsoll.model.api.policies import Policies


class PolicyConfig(Policies):
    """The rules' settings, and the environment that the objects are meant for."""

    environment: EnvironmentSpec | None = None
    """Absent: the Environment among the objects; what depends on it is not judged where there is none."""

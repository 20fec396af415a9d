"""The shards of one writer: which of them take new objects, and which are armed."""

import threading
from collections.abc import Callable, Iterator

from plimsoll.apply.settings import ApplySettings
from plimsoll.apply.stacks.shard import Shard


class Roster:
    """Every stack of the environment: those that take new objects, and those that only hold what they have.

    `may_arm` says whether anything may be started ahead of need.
    """

    def __init__(self, settings: ApplySettings, may_arm: Callable[[], bool]) -> None:
        self._settings = settings
        self._may_arm = may_arm
        self._shards: dict[str, Shard] = {}
        self._arranging = threading.Lock()
        self._draining = False
        self._expected = 0

    def add(self, shard: Shard) -> None:
        self._shards[shard.name] = shard

    def clear(self) -> None:
        self._shards = {}

    def __iter__(self) -> Iterator[Shard]:
        return iter(self._shards.values())

    def __len__(self) -> int:
        return len(self._shards)

    def __getitem__(self, stack: str) -> Shard:
        return self._shards[stack]

    def home(self, stack: str) -> Shard | None:
        """The shard of that name, else one that takes new objects; None for a name of no shard of this environment."""
        if self._settings.shard_number(stack) is None:
            return None
        return self._shards.get(stack) or self._taking()[0]

    def ready(self) -> list[str]:
        """Names of the shards that take new objects: who can begin soonest first, then the emptiest."""
        shards = sorted(self._taking(), key=lambda each: (each.rank, len(each.state.resources)))
        return [shard.name for shard in shards]

    def expect(self, stacks: int) -> None:
        """A delta for so many stacks is about to come: arms as many, beyond what the settings want."""
        self._expected = stacks
        self.arrange()

    def begun(self) -> None:
        """What was expected is under way: nothing is armed for it any more."""
        self._expected = 0

    def arrange(self) -> None:
        """Arms as many shards as are wanted, the emptiest first, and disarms what is too much."""
        with self._arranging:
            if self._draining or not self._may_arm():
                return
            wanted = max(self._settings.armed_shards, self._expected)
            shards = self._taking()
            standing = [shard for shard in shards if shard.standing]
            for shard in standing[wanted:]:
                if shard.idle:
                    shard.disarm()
            spare = [shard for shard in shards if shard.idle and not shard.standing and shard.may_arm]
            spare.sort(key=lambda each: len(each.state.resources))
            for shard in spare[: max(0, wanted - len(standing))]:
                shard.arm()

    def rest(self) -> None:
        """Arms nothing from now on."""
        with self._arranging:
            self._draining = True

    def wake(self) -> None:
        self._draining = False

    def _taking(self) -> list[Shard]:
        names = map(self._settings.stack_name, range(self._settings.shards))
        return [self._shards[name] for name in names if name in self._shards]

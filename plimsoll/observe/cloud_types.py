"""Instance types from the APIs of clouds, in addition to those that the cluster shows.

Enabled by `catalog.awsRegion` of the Environment. If a cloud does not answer, the built-in table is used, and the
snapshot contains a warning.
"""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from plimsoll import home
from plimsoll.model import Snapshot
from plimsoll.model.cluster import InstanceType

AGAIN: Final = timedelta(minutes=10)
"""Time until a cloud that did not answer is queried again."""

log = structlog.get_logger(__name__)


class Answer(NamedTuple):
    """The instance types of one region."""

    types: tuple[InstanceType, ...]
    warnings: tuple[str, ...]
    due: datetime
    """When the cloud is queried again."""


class CloudTypes:
    """Queries each region once, and refreshes the answers in the background.

    A snapshot waits for the first answer for a region, or until the requests have failed. Answers are stored in
    `folder`.
    """

    def __init__(
        self,
        folder: Path,
        on_answer: Callable[[], None] = lambda: None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`on_answer` is called on another thread when a later answer has arrived."""
        self._folder = folder
        self._on_answer = on_answer
        self._clock = clock
        self._answers: dict[str, Answer] = {}
        self._asking: threading.Thread | None = None
        self.version = 0
        """Grows with every answer."""

    def completed(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with the instance types of its Environment's region; the same object if none is set."""
        region = snapshot.environment.spec.catalog.aws_region
        if region is None:
            return snapshot
        answer = self._answers.get(region) or self._ask(region)
        return snapshot.model_copy(
            update={"instance_types": answer.types, "warnings": (*snapshot.warnings, *answer.warnings)}
        )

    def refresh(self) -> None:
        """Repeats, on another thread, the queries that are due."""
        now = self._clock()
        due = [region for region, answer in self._answers.items() if answer.due <= now]
        if due and (self._asking is None or not self._asking.is_alive()):
            self._asking = threading.Thread(target=self._ask_again, args=(due,), name="cloud-types", daemon=True)
            self._asking.start()

    def _ask_again(self, regions: list[str]) -> None:
        for region in regions:
            self._ask(region)
        self._on_answer()

    def _ask(self, region: str) -> Answer:
        # Importing boto3 takes a third of a second, and most environments do not need it.
        from plimsoll.observe.aws import AwsError
        from plimsoll.observe.ec2 import MAX_AGE, ec2_types

        now = self._clock()
        try:
            found = ec2_types(self._folder, now, region)
        except AwsError as error:
            log.warning("cannot read instance types", region=region, error=error.message)
            kept = self._answers.get(region)
            warning = (
                f"{error.message}: {'the last answer' if kept and kept.types else 'the built-in table'} is used instead"
            )
            hint = f" ({error.hint})" if error.hint else ""
            answer = Answer(kept.types if kept else (), (f"{warning}{hint}",), now + AGAIN)
        else:
            fresh = found.age(now) <= MAX_AGE
            answer = Answer(found.types, found.warnings, found.fetched_at + MAX_AGE if fresh else now + AGAIN)
        self._answers[region] = answer
        self.version += 1
        return answer


def with_cloud_types(snapshot: Snapshot) -> Snapshot:
    """The snapshot with the instance types of its Environment's region, if one is set. Stored answers are used for a
    week."""
    return CloudTypes(home.instance_types()).completed(snapshot)

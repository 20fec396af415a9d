"""The environment of bench.reaction has room for the requested number of Workspaces."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from bench import reaction
from demo.working_copy import make
from plimsoll.errors import PlimsollError
from plimsoll.stacks import Settings


def fitted(folder: Path, workspaces: int) -> Settings:
    path = make(folder) / "stacks" / "Pulumi.sandbox-nap.yaml"
    reaction.fit(path, workspaces)
    config: dict[str, Any] = yaml.safe_load(path.read_text())["config"]
    return Settings.model_validate({key.removeprefix("plimsoll:"): value for key, value in config.items()})


@pytest.mark.parametrize("workspaces", [2, 17, 40, 2000])
def test_no_limit_is_below_the_number_of_workspaces(tmp_path: Path, workspaces: int) -> None:
    settings = fitted(tmp_path, workspaces)

    limits = settings.environment.limits
    assert limits is not None
    found: list[float | None] = [limits.nodes, limits.gpus]
    found += [int(pool.limits["nvidia.com/gpu"]) for pool in settings.node_pools.values() if pool.limits]
    found += [queue.resources.gpu.limit for queue in settings.queues.values()]
    assert found == [workspaces] * len(found)
    assert not settings.workspaces


def test_no_claim_is_replaced_while_it_is_measured(tmp_path: Path) -> None:
    claims = fitted(tmp_path, 2000).environment.node_claims

    assert claims is not None
    assert claims.launch_deadline_seconds >= 24 * 3600
    assert claims.registration_deadline_seconds >= claims.launch_deadline_seconds


def test_the_spread_of_several_seconds(tmp_path: Path) -> None:
    assert reaction.spread([3.0]) == {"p50": 3.0, "p95": 3.0, "most": 3.0}
    assert reaction.spread([float(n) for n in range(20, -1, -1)]) == {"p50": 10.0, "p95": 19.0, "most": 20.0}


def test_only_deltas_of_the_measured_case_count(tmp_path: Path) -> None:
    log = tmp_path / "log"
    timing = '{"engine": %d, "provider": 1, "review": 0}'
    lines = [
        f'{{"event": "delta applied", "created": ["NodeClaim pre-started-0-a"], "timings": [{timing % 2}]}}',
        f'{{"event": "delta applied", "created": ["NodeClaim cold-0-a"], "timings": [{timing % 9}]}}',
        f'{{"event": "delta applied", "timings": [{timing % 9}]}}',
        "Traceback, not JSON",
    ]
    log.write_text("\n".join(lines))

    assert reaction.parts(log, "pre-started") == {"engine": 2, "provider": 1, "review": 0}
    with pytest.raises(PlimsollError, match="no delta for a Workspace warm"):
        reaction.parts(log, "warm")

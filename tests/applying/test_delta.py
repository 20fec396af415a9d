"""Divides a Plan into parts for the stacks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.apply import PlanMismatchError
from plimsoll.apply.delta import Part, assign, require_applicable
from plimsoll.apply.state import State
from plimsoll.model import ObjectKey, Plan
from tests.applying.states import a_claim, a_deployment, a_state, change, deletion, live

STACKS = [f"capacity-test-{number}" for number in range(4)]


def states(**objects: list[str]) -> dict[str, State]:
    """The states by the last digit of their stack, for example `s0=["claim", ...]`."""
    return {
        stack: a_state(
            *(live(a_claim(name, f"ws-{name}"), stack=stack) for name in objects.get(f"s{index}", ())), stack=stack
        )
        for index, stack in enumerate(STACKS)
    }


def names(parts: dict[str, Part]) -> dict[str, list[str]]:
    return {stack: [key.name for key in part.keys] for stack, part in parts.items()}


def test_new_objects_go_to_the_stack_that_is_ready_first() -> None:
    plan = Plan(creations=(change(a_claim("a")), change(a_claim("b", "other"))))
    assert names(assign(plan, states(), STACKS[2:], 100)) == {STACKS[2]: ["a", "b"]}


def test_new_objects_go_to_the_stack_of_their_owner() -> None:
    plan = Plan(creations=(change(a_claim("b", "ws-a")),))
    assert names(assign(plan, states(s1=["a"]), STACKS, 100)) == {STACKS[1]: ["b"]}


def test_a_full_stack_gets_no_new_objects() -> None:
    plan = Plan(creations=(change(a_claim("b", "ws-a")), change(a_claim("c", "ws-a"))))
    assert names(assign(plan, states(s1=["a"]), STACKS, 2)) == {STACKS[1]: ["b"], STACKS[0]: ["c"]}


def test_updates_and_deletions_go_to_the_stack_of_the_object() -> None:
    held = states(s3=["a"]) | {STACKS[2]: a_state(live(a_deployment("w"), stack=STACKS[2]), stack=STACKS[2])}
    plan = Plan(updates=(change(a_deployment("w")),), deletions=(deletion(a_claim("a"), "uid-a"),))
    assert names(assign(plan, held, STACKS, 100)) == {STACKS[2]: ["w"], STACKS[3]: ["a"]}


@pytest.mark.parametrize(
    ("burst", "room", "parts"),
    [(250, 200, [125, 125]), (300, 200, [100] * 3), (200, 60, [60, 60, 40, 40]), (100, 200, [100])],
)
def test_a_burst_is_divided_evenly_over_several_stacks(burst: int, room: int, parts: list[int]) -> None:
    plan = Plan(creations=tuple(change(a_claim(f"c{number}")) for number in range(burst)))
    assert [len(part.creations) for part in assign(plan, states(), STACKS, room).values()] == parts


@given(
    held=st.lists(st.integers(0, 3), max_size=20),
    fresh=st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=60),
    gone=st.integers(0, 20),
    ready=st.permutations(STACKS).flatmap(lambda stacks: st.integers(1, 4).map(lambda count: stacks[:count])),
)
def test_every_operation_has_one_stack_and_existing_objects_never_move(
    held: list[int], fresh: list[tuple[int, bool]], gone: int, ready: list[str]
) -> None:
    placed = {f"old-{number}": shard for number, shard in enumerate(held)}
    before = states(**{f"s{shard}": [name for name, at in placed.items() if at == shard] for shard in range(4)})
    deleted = list(placed)[:gone]
    plan = Plan(
        creations=tuple(change(a_claim(f"new-{number}", f"ws-{owner}")) for number, (owner, _) in enumerate(fresh)),
        deletions=tuple(deletion(a_claim(name), f"uid-{name}") for name in deleted),
    )

    parts = assign(plan, before, ready, 15)

    assigned = [key for part in parts.values() for key in part.keys]
    assert sorted(map(str, assigned)) == sorted(
        [str(each.key) for each in plan.creations] + [str(each.key) for each in plan.deletions]
    )
    for stack, part in parts.items():
        assert all(each.key in before[stack].resources for each in part.deletions)
        assert stack in ready or not part.creations or len(before[stack].resources) < 15


def test_a_plan_may_delete_any_number_of_objects() -> None:
    """`limits.deletionsPerTick` of the Environment is the only limit, and the planner applies it."""
    require_applicable(Plan(deletions=tuple(deletion(a_claim(f"c{number}"), "") for number in range(200))))


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Plan(updates=(change(a_claim("c")),)), "a NodeClaim is immutable"),
        (Plan(creations=(change(a_claim("c")), change(a_claim("c")))), "two operations"),
        (Plan(creations=(change(a_claim("c") | {"apiVersion": "v1", "kind": "Secret"}),)), "must not contain Secrets"),
    ],
)
def test_plans_that_an_update_must_not_execute_are_refused(plan: Plan, message: str) -> None:
    with pytest.raises(PlanMismatchError, match=message):
        require_applicable(plan)


def test_keys_are_those_of_all_operations() -> None:
    part = Part([change(a_claim("a"))], [change(a_deployment("b"))], [deletion(a_claim("c"), "")])
    assert part.keys == [ObjectKey.of(each) for each in (a_claim("a"), a_deployment("b"), a_claim("c"))]

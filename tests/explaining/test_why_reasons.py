"""The chain of each reason that small objects reach: it names the reason, and a change that a plan has proven, or none
where none can be proven."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from plimsoll.explaining import (
    Chain,
    PlannedDemand,
    State,
    Step,
    StepReason,
    explain,
    plan_demand,
    why_node,
    why_pod,
    why_workspace,
)
from plimsoll.model import Reason
from plimsoll.model.api import (
    ClaimStage,
    DemandClaim,
    DemandPhase,
    GPUDemand,
    GPUDemandStatus,
    Workspace,
    WorkspaceStatus,
)
from plimsoll.model.cluster import Pod
from plimsoll.model.karpenter import NodeClaim
from plimsoll.model.meta import Condition
from plimsoll.plan import plan, validate
from plimsoll.plan.classes import RefusalReason
from plimsoll.plan.workspaces import ByoNodes
from plimsoll.policy import withhold
from tests.builders import (
    NC24,
    V100,
    V100_MIB,
    a_claim,
    a_gpu_node,
    a_node,
    a_node_pool,
    a_pod,
    a_snapshot,
    a_template,
    a_waiting_pod,
    a_workload,
    a_workspace,
    an_environment,
)
from tests.claims import objects as claims

NOW = datetime(2026, 1, 1, 0, 5, tzinfo=UTC)
L4 = "g6.xlarge"
POOL = a_node_pool("l4", (L4,), group="karpenter.k8s.aws")
PHI = "phi-4-mini-instruct"
AFTER_FAILURES = WorkspaceStatus.model_validate(
    {"provisioning": {"failures": 2, "tries": 2, "lastFailure": "2026-01-01T00:04:50Z", "reason": "NodeClaimLate"}}
)
UNAVAILABLE = {"type": "Launched", "status": "False", "reason": "InsufficientCapacityError", "message": "no capacity"}
REFUSED_CLAIM = NodeClaim.read({"metadata": {"name": "claim"}, "status": {"conditions": [UNAVAILABLE]}})


def half(**more: Any) -> Pod:
    return a_waiting_pod(gpu_fraction="0.5", **more)


def in_grace() -> Pod:
    """A pod that became unschedulable five minutes ago."""
    pod = half()
    (condition,) = pod.conditions
    since = condition.model_copy(update={"last_transition_time": "2026-01-01T00:00:00Z"})
    return pod.model_copy(update={"conditions": (since,)})


def planned_of(*objects: Any, **spec: Any) -> PlannedDemand:
    demand = {"provisioner": "trigger-pod", **spec.pop("demand", {})}
    return plan_demand(a_snapshot(*objects, environment=an_environment(demand=demand, **spec)), NOW)


def chain_of_workspace(workspace: Workspace, *objects: Any, **environment: Any) -> Chain:
    snapshot = a_snapshot(workspace, *objects, environment=an_environment(**environment))
    whole = withhold(plan(snapshot, validate(snapshot), NOW), snapshot, NOW)
    return why_workspace(plan_demand(snapshot, NOW), explain(snapshot, whole, workspace.ref, NOW), whole)


def provisioned(**more: Any) -> Workspace:
    return a_workspace(preset=PHI, instance_type=NC24, replicas=1, **more)


def deployment_of(workspace: Workspace) -> dict[str, Any]:
    """The workload that a plan creates for it on an existing node."""
    snapshot = a_snapshot(workspace, a_node())
    (manifest,) = [
        each.manifest for each in plan(snapshot, validate(snapshot), NOW).creations if each.key.kind == "Deployment"
    ]
    return manifest


TUNING = a_workspace(inference=False)


class Case(NamedTuple):
    objects: Sequence[Any]
    """Of a Workspace's case the first one."""
    environment: dict[str, Any]
    change: str = ""
    """The start of a change that must be among the proven ones; empty: none is known."""


TWO_TYPES = a_node_pool("l4", (L4, "g6.12xlarge"), group="karpenter.k8s.aws")
SKIPPED = GPUDemand.read(
    {
        "metadata": {"name": "earlier"},
        "status": {
            "phase": "Launching",
            "blocked": [{"nodePool": "l4", "instanceType": L4, "until": "2026-01-01T00:10:00Z"}],
        },
    }
)
PINNED = {"rules": {"image-digest": {"options": {"required": True}}}}


PODS: dict[str, Case] = {
    RefusalReason.UNREADABLE: Case((POOL, a_waiting_pod(gpu_fraction="half")), {}),
    RefusalReason.BLOCKED: Case(
        (POOL, half(), SKIPPED), {}, "NodePool l4: requirement node.kubernetes.io/instance-type"
    ),
    RefusalReason.SURPLUS: Case(
        (TWO_TYPES, half(), SKIPPED),
        {"demand": {"surplusGpus": 1}},
        "Environment test: spec.demand.surplusGpus: 1 -> 3",
    ),
    StepReason.WITHHELD: Case(
        (POOL, half()),
        {"policies": PINNED},
        "Environment test: spec.policies.exemptions: (absent) -> Pod plimsoll-triggers/smart-gpu-scheduler-nvidia-l4",
    ),
    StepReason.NODE_GONE: Case((half(node="gone"),), {}),
    StepReason.GATED: Case((half(reason=None).model_copy(update={"scheduling_gates": ("own",)}),), {}),
    StepReason.PREEMPTING: Case((POOL, half().model_copy(update={"nominated_node_name": "n"})), {}),
    StepReason.NOT_YET_UNSCHEDULABLE: Case((POOL, half(reason=None)), {}),
    StepReason.WHOLE_GPUS: Case((POOL, a_waiting_pod(gpus=1)), {}),
    StepReason.NO_PROVISIONER: Case(
        (POOL, half()), {"demand": {"provisioner": "none"}}, "Environment test: spec.demand.provisioner: none ->"
    ),
    StepReason.GRACE: Case((POOL, in_grace()), {"demand": {"graceSeconds": 600}}),
    DemandPhase.NODE_READY: Case((a_gpu_node("n", "NVIDIA-L4", instance_type=L4), half()), {}),
}
WORKSPACES: dict[str, Case] = {
    Reason.NO_MATCHING_NODES: Case(
        (a_workspace(preset=PHI, selector={"pool": "b"}), a_node()),
        {},
        "Workspace default/ws: spec.resource.labelSelector[pool]: b -> a",
    ),
    Reason.NO_USABLE_NODES: Case(
        (a_workspace(preset=PHI), a_node(cordoned=True), a_node("other", "b")),
        {},
        "Workspace default/ws: spec.resource.labelSelector[pool]: a -> b",
    ),
    Reason.NO_FREE_NODES: Case(
        (a_workspace(preset=PHI), a_workspace("older", preset=PHI, created="2025-01-01T00:00:00Z"), a_node()), {}
    ),
    Reason.GPU_LABELS_INVALID: Case((a_workspace(preset=PHI), a_node(memory="much")), {}),
    Reason.NON_UNIFORM_NODES: Case(
        (a_workspace(preset=PHI), a_node("a"), a_node("v", product=V100, memory=V100_MIB)),
        {},
        "Workspace default/ws: spec.resource.labelSelector[nvidia.com/gpu.product]: (absent) -> NVIDIA-A100",
    ),
    Reason.INSUFFICIENT_GPU_MEMORY: Case((a_workspace(gpu_memory_gib=1000), a_node()), {}),
    Reason.INSTANCE_TYPE_FORBIDDEN: Case(
        (provisioned(), a_node(instance_type=NC24)), {}, "Environment test: spec.byoInstanceType: refuse -> narrow"
    ),
    Reason.INSTANCE_TYPE_REQUIRED: Case((a_workspace(preset=PHI),), {"nap": True}),
    Reason.UNSUPPORTED_INSTANCE_TYPE: Case(
        (a_workspace(preset=PHI, instance_type=NC24.replace("v4", "v3")),),
        {"nap": True},
        f"Workspace default/ws: spec.resource.instanceType: {NC24.replace('v4', 'v3')} -> {NC24}",
    ),
    Reason.SELECTOR_RESERVED: Case(
        (a_workspace(preset=PHI, selector={"plimsoll.dev/workspace": "a"}), a_node()),
        {},
        "Workspace default/ws: spec.resource.labelSelector[plimsoll.dev/workspace]: a -> (absent)",
    ),
    Reason.UNKNOWN_PRESET: Case((a_workspace(preset="none"), a_node()), {}),
    Reason.NOT_ALLOWED: Case(
        (a_workspace(preset=PHI), a_node()),
        {"access": [{"namespaces": ["other"]}]},
        "Environment test: spec.access: no entry for default -> an entry for default",
    ),
    Reason.LIMIT_EXCEEDED: Case(
        (provisioned(),), {"nap": True, "limits": {"nodes": 0}}, "Environment test: spec.limits.nodes: 0 -> 1"
    ),
    Reason.INVALID_SPEC: Case(
        (a_workspace(template=a_template(resources={"requests": {"cpu": "much"}})), a_node()), {}
    ),
    Reason.NOT_SUPPORTED: Case(
        (TUNING.model_copy(update={"spec": TUNING.spec.model_copy(update={"tuning": {}})}), a_node()), {}
    ),
    StepReason.WORKLOAD_NOT_READY: Case(
        (a_workspace(preset=PHI, replicas=1), a_node(), a_workload(deployment_of(a_workspace(preset=PHI, replicas=1)))),
        {},
    ),
    StepReason.WITHHELD: Case(
        (a_workspace(preset=PHI), a_node()),
        {"policies": PINNED},
        "Environment test: spec.policies.exemptions: (absent) -> Deployment default/ws from image-digest, until",
    ),
    StepReason.LIMITED: Case(
        (provisioned(), a_claim("leaving", provisioned(), deleting=True)),
        {"nap": True, "limits": {"nodes": 1}},
        "Environment test: spec.limits.nodes: 1 -> 2",
    ),
    StepReason.NOT_REQUESTED_YET: Case((provisioned(),), {"nap": True}),
    StepReason.CLAIM_WAITS: Case((provisioned(), a_claim("c")), {"nap": True}),
    StepReason.ATTEMPT_FAILED: Case((provisioned().model_copy(update={"status": AFTER_FAILURES}),), {"nap": True}),
}
NODES: dict[str, tuple[Any, str]] = {
    StepReason.CLAIM_REFUSED: (REFUSED_CLAIM, "claim"),
    StepReason.NODE_UNUSABLE: (a_node(cordoned=True), "node"),
}


def assert_proven(chain: Chain, case: Case) -> None:
    """The change is among those that a plan has proven, or none is proposed."""
    texts = [text for remedy in chain.remedies for text in remedy.changes]
    assert all(remedy.helped >= 1 for remedy in chain.remedies)
    assert any(text.startswith(case.change) for text in texts) if case.change else not texts


@pytest.mark.parametrize("reason", PODS)
def test_the_chain_of_a_pod_has_the_reason_and_what_helps(reason: str) -> None:
    case = PODS[reason]
    chain = why_pod(planned_of(*case.objects, **case.environment), "team", "pod")
    assert chain.decisive.reason == reason
    assert_proven(chain, case)


@pytest.mark.parametrize("reason", WORKSPACES)
def test_the_chain_of_a_workspace_has_the_reason_and_what_helps(reason: str) -> None:
    case = WORKSPACES[reason]
    chain = chain_of_workspace(*case.objects, **case.environment)
    assert chain.decisive.reason == reason
    assert_proven(chain, case)


FOUR_L4 = (claims.a_class(), claims.a_node("one"), claims.a_slice("one", claims.gpus(4)))
MEMORY = f"device.capacity['{claims.DRIVER}'].memory"
CLAIMED: dict[str, tuple[tuple[Any, ...], str]] = {
    "a template that does not exist": (
        (claims.a_template("one", claims.asked()), claims.a_pod("pod", "on"), claims.a_pod("right", "one")),
        "Pod team/pod: spec.resourceClaims[gpu].resourceClaimTemplateName: on -> one",
    ),
    "a class that does not exist": (
        (claims.a_template("one", claims.asked(of="gpu.nvidia.co")), claims.a_pod("pod", "one")),
        "ResourceClaimTemplate team/one: spec.spec.devices.requests[r0].deviceClassName: gpu.nvidia.co -> "
        "gpu.nvidia.com",
    ),
    "more devices than a node has": (
        (claims.a_template("six", claims.asked(6)), claims.a_pod("pod", "six")),
        "ResourceClaimTemplate team/six: spec.spec.devices.requests[r0].count: 6 -> 4",
    ),
    "a selector that no device meets": (
        (
            claims.a_claim("own", claims.asked(1, f"{MEMORY}.compareTo(quantity('40Gi')) > 0")),
            claims.a_pod("pod", claim="own"),
        ),
        "ResourceClaim team/own: spec.devices.requests[r0].selectors: ",
    ),
}


@pytest.mark.parametrize("case", CLAIMED)
def test_a_claim_that_is_not_met_has_the_change_of_what_is_claimed(case: str, tmp_path: Path) -> None:
    objects, change = CLAIMED[case]
    snapshot = claims.snapshot_of(tmp_path, *FOUR_L4, *objects)
    snapshot = snapshot.model_copy(update={"environment": an_environment(demand={"provisioner": "trigger-pod"})})
    chain = why_pod(plan_demand(snapshot, NOW), "team", "pod")
    assert chain.decisive.reason == RefusalReason.CLAIM
    assert_proven(chain, Case((), {}, change))


def test_a_claim_without_devices_of_its_kind_proposes_nothing(tmp_path: Path) -> None:
    snapshot = claims.snapshot_of(tmp_path, claims.a_class(), claims.a_template("one", claims.asked()),
                                  claims.a_pod("pod", "one"))  # fmt: skip
    chain = why_pod(plan_demand(snapshot, NOW), "team", "pod")
    assert_proven(chain, Case((), {}))


def test_a_policy_without_an_effect_on_other_changes_is_no_reason_to_propose_them() -> None:
    """A node more or a smaller limit leaves the object withheld."""
    case = WORKSPACES[StepReason.WITHHELD]
    chain = chain_of_workspace(*case.objects, **case.environment)
    assert all("spec.policies." in text for remedy in chain.remedies for text in remedy.changes)


def test_a_warning_about_other_nodes_is_nothing_to_wait_for() -> None:
    workspace = a_workspace(preset=PHI, replicas=1)
    ready = a_workload(deployment_of(workspace)).model_copy(update={"ready_replicas": 1})
    chain = chain_of_workspace(workspace, a_node(), a_node("other", cordoned=True), ready)
    assert any("other (cordoned)" in link.text for link in chain.links)
    assert {link.state for link in chain.links} == {State.PASSED}


def test_a_fault_of_plimsoll_has_its_reason_and_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise TypeError("unsupported operand")

    monkeypatch.setattr(ByoNodes, "evaluate", fails)
    chain = chain_of_workspace(a_workspace(preset=PHI), a_node())
    assert chain.decisive.reason == Reason.INTERNAL_ERROR
    assert_proven(chain, Case((), {}))


@pytest.mark.parametrize("reason", NODES)
def test_the_chain_of_a_node_has_the_reason(reason: str) -> None:
    obj, name = NODES[reason]
    chain = why_node(planned_of(obj), name)
    assert (chain.decisive.reason, chain.blocked) == (reason, True)


@pytest.mark.parametrize("phase", DemandPhase)
def test_the_chain_of_a_pod_has_the_phase_of_its_demand(phase: DemandPhase) -> None:
    chain = with_status(GPUDemandStatus(phase=phase))
    assert phase.value in {link.reason for link in chain.links}
    assert chain.blocked == (phase in {DemandPhase.REFUSED, DemandPhase.EXPIRED, DemandPhase.FAILED})


@pytest.mark.parametrize("stage", ClaimStage)
def test_the_chain_of_a_pod_has_the_stage_of_each_node_claim(stage: ClaimStage) -> None:
    claims = (DemandClaim(name="c", stage=stage),)
    chain = with_status(GPUDemandStatus(phase=DemandPhase.LAUNCHING, node_claims=claims))
    answers = {link.reason: link.state for link in chain.links if link.step is Step.ANSWER}
    assert set(answers) == {stage.value}
    assert (answers[stage.value] is State.BLOCKED) == (stage is ClaimStage.FAILED)


def with_status(status: GPUDemandStatus) -> Chain:
    """The chain of a pod whose demand has this status."""
    planned = planned_of(POOL, half())
    (name,) = planned.statuses
    return why_pod(replace(planned, statuses={name: status}), "team", "pod")


def test_of_a_node_claim_that_is_deleted_why_says_what_keeps_it() -> None:
    """Not what its conditions said before, such as of GPUs that did not come."""
    waits = Condition(type="Initialized", status="Unknown", reason="ResourceNotRegistered", message="no GPUs")
    kept = ("pod shop/web (PodDisruptionBudget shop/web allows no disruption)",)
    leaving = a_claim("leaving", provisioned(), deleting=True, node="n")
    leaving = leaving.model_copy(update={"conditions": (waits,), "blocking": kept})
    [link] = [each for each in chain_of_workspace(provisioned(), leaving, nap=True).links if each.step is Step.ANSWER]
    assert kept[0] in link.text
    assert "no GPUs" not in link.text


def test_of_pods_that_do_not_run_why_says_what_kubernetes_tells() -> None:
    workspace = a_workspace(preset=PHI, replicas=1)
    pod = a_pod("p", workspace, node="node").model_copy(update={"halted": "container server: image i cannot be pulled"})
    chain = chain_of_workspace(workspace, a_node(), a_workload(deployment_of(workspace)), pod)
    [link] = [each for each in chain.links if each.reason == StepReason.WORKLOAD_NOT_READY]
    assert "pod p: container server: image i cannot be pulled" in link.text


@pytest.mark.parametrize(
    ("annotations", "devices", "fields"),
    [
        ({}, ("nvidia.com/gpu", "amd.com/gpu"), ["resources[amd.com/gpu]", "resources[nvidia.com/gpu]"]),
        (
            {"gpu-fraction": "0.5"},
            ("nvidia.com/gpu",),
            ["metadata.annotations[gpu-fraction]", "resources[nvidia.com/gpu]"],
        ),
        ({"gpu-fraction": "half"}, (), []),
    ],
    ids=["vendors", "forms", "no number"],
)
def test_of_two_requests_that_no_pod_may_have_one_is_to_go(
    annotations: dict[str, str], devices: tuple[str, ...], fields: list[str]
) -> None:
    container = {"name": "c", "resources": {"limits": dict.fromkeys(devices, "1")}}
    pod = a_waiting_pod("p").model_copy(update={"annotations": annotations, "containers": (container,)})
    plain = a_waiting_pod("plain", gpu_fraction="0.5")
    environment = an_environment(demand={"provisioner": "trigger-pod"})
    snapshot = a_snapshot(POOL, pod, plain, environment=environment)
    chain = why_pod(plan_demand(snapshot, NOW), pod.namespace, pod.name)
    assert [link.reason for link in chain.links] == [RefusalReason.UNREADABLE]
    assert sorted(each.changes[0] for each in chain.remedies) == [
        f"Pod {pod.namespace}/p: {field}: {annotations.get(field[21:-1], '1')} -> (absent)" for field in fields
    ]

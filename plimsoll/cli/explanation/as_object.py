"""The explanation as a JSON object."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from plimsoll.cluster.catalog import OfferedType
from plimsoll.cluster.nodes import PodDevices
from plimsoll.estimating import Infeasible
from plimsoll.explaining import ClaimExplanation, Explanation, NodeExplanation, ReplicaEstimate
from plimsoll.labels import GPU_COUNT, GPU_MEMORY, GPU_PRODUCT
from plimsoll.plan.owned import Attempts, phase_of


def as_json(explanation: Explanation, events: list[dict[str, Any]]) -> dict[str, Any]:
    """`workspace`, `environment`, `request`, `selector`, `verdict`, `need`, `instanceType`, `nodes`, `nodeClaims`,
    `attempts`, `workloads`, `limits`, `plan`, `conditions`, `events`."""
    verdict = explanation.verdict
    workspace = explanation.workspace
    return {
        "workspace": {"namespace": explanation.ref.namespace, "name": explanation.ref.name, "uid": explanation.ref.uid},
        "environment": {
            "name": explanation.environment.name,
            "nodeAutoProvisioning": explanation.environment.spec.node_auto_provisioning,
            "provisioner": explanation.environment.spec.effective_provisioner.value,
        },
        "request": None if workspace is None else workspace.spec.manifest(),
        "selector": "" if workspace is None else str(workspace.spec.resource.label_selector),
        "verdict": {
            "accepted": verdict.accepted,
            "reason": verdict.reason.value,
            "message": verdict.message,
            "perReplicaNodeCount": verdict.per_replica_node_count,
            "targetNodeCount": verdict.target_node_count,
            "allocatedNodes": list(verdict.allocated_nodes),
            "startableReplicas": verdict.startable_replicas,
            "warnings": list(verdict.warnings),
        },
        "need": _need(explanation),
        "instanceType": None if explanation.offered is None else _offered(explanation.offered),
        "nodes": [_node(each) for each in explanation.nodes],
        "nodeClaims": [_claim(each) for each in explanation.claims],
        "attempts": None if explanation.attempts is None else _attempts(explanation.attempts),
        "workloads": [
            {"kind": each.kind, "name": each.name, "replicas": each.replicas, "readyReplicas": each.ready_replicas}
            for each in explanation.workloads
        ],
        "limits": list(explanation.bounds),
        "plan": {
            **{
                name: [
                    {"kind": each.key.kind, "namespace": each.key.namespace, "name": each.key.name, "why": each.reason}
                    for each in operations
                ]
                for name, operations in _operations(explanation).items()
            },
            "withheld": [finding.as_json() for each in explanation.withheld for finding in each.findings],
            "warnings": list(explanation.warnings),
        },
        "conditions": []
        if workspace is None
        else [
            {
                "type": each.type,
                "status": each.status,
                "reason": each.reason,
                "message": each.message,
                "since": each.last_transition_time,
            }
            for each in workspace.status.conditions
        ],
        "events": events,
    }


def _operations(explanation: Explanation) -> dict[str, tuple[Any, ...]]:
    return {"create": explanation.creations, "update": explanation.updates, "delete": explanation.deletions}


def _need(explanation: Explanation) -> dict[str, Any] | None:
    need, found = explanation.need, explanation.estimate
    if need is None:
        return None
    return {
        "of": need.subject,
        "spansNodes": need.spans_nodes,
        "perReplicaNodeCount": need.per_replica,
        "leastMiB": need.least_mib or None,
        "estimate": None if found is None else _estimate(found),
    }


def _estimate(found: ReplicaEstimate) -> dict[str, Any]:
    outcome = found.outcome
    return {
        "on": found.on,
        "feasible": outcome.feasible,
        "reason": outcome.reason if isinstance(outcome, Infeasible) else None,
        "minGpus": outcome.min_gpus,
        "nodes": outcome.nodes,
        "settings": {
            "utilization": found.settings.utilization,
            "overheadGib": found.settings.overhead_gib,
            "activationFactor": found.settings.activation_factor,
            "weightFactor": found.settings.weight_factor,
            "contextLength": found.settings.context_length,
            "kvValueBytes": found.settings.kv_value_bytes,
        },
        "lines": [
            {"name": each.name, "value": each.value, "unit": each.unit, "sum": each.sum} for each in outcome.lines
        ],
    }


def _node(explanation: NodeExplanation) -> dict[str, Any]:
    labels = explanation.node.labels
    return {
        "name": explanation.node.name,
        "product": labels.get(GPU_PRODUCT),
        "count": labels.get(GPU_COUNT),
        "memory": labels.get(GPU_MEMORY),
        "instanceType": explanation.node.instance_type,
        "offers": str(explanation.offer) if isinstance(explanation.offer, PodDevices) else "",
        "usable": not explanation.problem,
        "why": explanation.problem,
        "counts": explanation.counts,
        "holders": list(explanation.users),
    }


def _offered(offered: OfferedType) -> dict[str, Any]:
    kind = offered.kind
    listed = None if kind is None or kind.price_per_hour is not None else kind.list_price
    return {
        "name": offered.name,
        "gpus": None if kind is None else kind.gpus,
        "gpuMemoryMiB": None if kind is None else kind.gpu_memory_mib,
        "memorySource": None if kind is None else kind.memory_source,
        "product": None if kind is None else kind.product,
        "productSource": None if kind is None else kind.product_source,
        "pricePerHour": None if kind is None else kind.price_per_hour,
        "listPrice": None if listed is None else asdict(listed),
        "note": None if kind is None else kind.note or None,
        "source": None if kind is None else kind.source,
        "nodePools": [pool.name for pool in offered.pools],
        "differences": list(offered.warnings),
    }


def _attempts(attempts: Attempts) -> dict[str, Any]:
    record = attempts.record
    return {
        "failures": record.failures,
        "totalFailures": record.tries,
        "lastFailure": record.last_failure or None,
        "reason": record.reason or None,
        "message": record.message or None,
        "alternatives": [
            {"alternative": str(each.alternative), "failures": each.failures, "message": each.message}
            for each in record.alternatives
        ],
        "omittedAlternatives": record.omitted_alternatives,
        "nextAttempt": _time(attempts.next_try),
        "nextDeadline": _time(attempts.next_deadline),
        "late": [{"name": name, "why": why} for name, why in sorted(attempts.late.items())],
        "overdue": list(attempts.overdue),
    }


def _time(time: datetime | None) -> str | None:
    return None if time is None else time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _claim(explanation: ClaimExplanation) -> dict[str, Any]:
    claim, waits = explanation
    waiting = next((each for each in claim.conditions if each.status != "True" and each.message), None)
    return {
        "name": claim.name,
        "phase": phase_of(claim),
        "instanceType": ", ".join(claim.instance_types),
        "node": claim.node_name,
        "waitsFor": None if waits is None else waits.step,
        "since": None if waits is None else _time(waits.since),
        "deadline": None if waits is None else _time(waits.due),
        "message": claim.stays
        or (f"{waiting.type}: {waiting.message}" if waiting is not None and not claim.ready else ""),
    }

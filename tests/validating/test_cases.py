"""Reports of others on Workspaces (../shared/cases/workspaces), and what is planned for each and for its neighbours."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.command import plimsoll
from tests.shared import shared

Planned = Mapping[str, Any]


def text_of(name: str, *changes: tuple[str, str]) -> str:
    """The manifests of a case, each change made once where its first text is."""
    text = shared(f"cases/workspaces/{name}.yaml").read_text()
    for before, after in changes:
        assert before in text, f"{name} has no {before!r}"
        text = text.replace(before, after, 1)
    return text


def plan_of(name: str, *changes: tuple[str, str], more: str = "") -> Planned:
    done = plimsoll("plan", "-f", "-", "-o", "json", given=f"{text_of(name, *changes)}\n---\n{more}")
    assert done.stdout, done.stderr
    found: Planned = json.loads(done.stdout)
    return found


def verdict_of(plan: Planned) -> Mapping[str, Any]:
    (verdict,) = plan["verdicts"]
    return dict(verdict)


def refused(plan: Planned) -> tuple[str, str]:
    """The reason and the message; nothing is bought, nothing runs."""
    assert plan["create"] == []
    verdict = verdict_of(plan)
    assert not verdict["accepted"]
    return verdict["reason"], verdict["message"]


def created(plan: Planned, kind: str) -> Mapping[str, Any]:
    (found,) = (each for each in plan["create"] if each["kind"] == kind)
    return dict(found)


def required(plan: Planned) -> dict[str, list[str]]:
    """The values that the one NodeClaim allows, by label: each of its requirements holds."""
    found: dict[str, list[str]] = {}
    for each in created(plan, "NodeClaim")["spec"]["requirements"]:
        if each["operator"] == "In":
            known = found.get(each["key"], each["values"])
            found[each["key"]] = [value for value in each["values"] if value in known]
    return found


def server(plan: Planned) -> Mapping[str, Any]:
    """The spec of the pods that serve."""
    spec: Mapping[str, Any] = created(plan, "Deployment")["spec"]["template"]["spec"]
    return spec


CAPACITY = "karpenter.sh/capacity-type"
ZONE = "topology.kubernetes.io/zone"


class TestDisk:
    CASE = "byo-disk-too-small"

    def test_weights_beyond_the_disk(self) -> None:
        reason, message = refused(plan_of(self.CASE))
        assert reason == "NoUsableNodes"
        assert "ephemeral-storage" in message

    @pytest.mark.parametrize(
        "change",
        [
            ('ephemeral-storage: "95551679124"', "ephemeral-storage: 200Gi"),
            ("inference: {preset", "inference: {weights: {volumeSource: {nfs: {server: s, path: /m}}}, preset"),
            ("llama-3.3-70b-instruct", "llama-3.1-8b-instruct"),
        ],
    )
    def test_neighbours_that_fit(self, change: tuple[str, str]) -> None:
        assert verdict_of(plan_of(self.CASE, change))["nodes"] == ["gpu-1"]

    def test_files_in_memory_need_memory(self) -> None:
        in_memory = "inference: {weights: {volumeSource: {emptyDir: {medium: Memory}}}, preset"
        changes = ("inference: {preset", in_memory), ("memory: 2000Gi", "memory: 100Gi")
        reason, message = refused(plan_of(self.CASE, *changes))
        assert reason == "NoUsableNodes"
        assert "of memory" in message


class TestReserved:
    CASE = "capacity-block-reserved"
    NODE_CLASS = """
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: blocks}
status:
  capacityReservations:
  - {id: cr-1, instanceType: INSTANCE_TYPE, reservationType: capacity-block, availabilityZone: eu-west-1a,
     endTime: "2027-01-01T00:00:00Z"}
"""

    def test_only_in_the_block(self) -> None:
        labels = required(plan_of(self.CASE))
        assert labels[CAPACITY] == ["reserved"]
        assert labels["karpenter.k8s.aws/capacity-reservation-type"] == ["capacity-block"]

    def test_the_end_of_the_block_is_told(self) -> None:
        plan = plan_of(self.CASE, more=self.NODE_CLASS.replace("INSTANCE_TYPE", "p5.48xlarge"))
        assert created(plan, "NodeClaim")
        (warning,) = verdict_of(plan)["warnings"]
        assert "cr-1" in warning
        assert "2027-01-01T00:00:00Z" in warning

    def test_a_block_of_another_type(self) -> None:
        reason, message = refused(plan_of(self.CASE, more=self.NODE_CLASS.replace("INSTANCE_TYPE", "p4d.24xlarge")))
        assert reason == "UnsupportedInstanceType"
        assert "cr-1" in message

    def test_not_beside_the_block(self) -> None:
        reason, message = refused(plan_of(self.CASE, ("capacityType: reserved", "capacityType: on-demand")))
        assert reason == "InvalidSpec"
        assert CAPACITY in message


class TestCapacityType:
    CASE = "capacity-type-default-spot"

    def test_that_of_the_pool(self) -> None:
        labels = required(plan_of(self.CASE))
        assert labels[CAPACITY] == ["on-demand"]
        assert labels[ZONE] == ["eu-west-1a"]

    def test_a_workspace_narrows(self) -> None:
        changes = (
            ("values: [on-demand]", "values: [on-demand, spot]"),
            ("instanceType: p5.48xlarge}", "instanceType: p5.48xlarge, capacityType: spot}"),
        )
        assert required(plan_of(self.CASE, *changes))[CAPACITY] == ["spot"]

    @pytest.mark.parametrize(
        ("wanted", "named"),
        [("capacityType: spot", "resource.capacityType"), ("zones: [eu-west-1b]", "resource.zones")],
    )
    def test_it_never_widens(self, wanted: str, named: str) -> None:
        change = ("instanceType: p5.48xlarge}", f"instanceType: p5.48xlarge, {wanted}}}")
        reason, message = refused(plan_of(self.CASE, change))
        assert reason == "InvalidSpec"
        assert named in message

    def test_without_a_pool_on_demand(self) -> None:
        plan = plan_of(self.CASE, ("values: [p5.48xlarge]", "values: [g6.xlarge]"))
        assert required(plan)[CAPACITY] == ["on-demand"]
        assert "on-demand" in verdict_of(plan)["message"]


class TestKnownType:
    CASE = "g6e-gpus-unknown"

    def test_of_the_catalog(self) -> None:
        claim = created(plan_of(self.CASE), "NodeClaim")["spec"]
        assert claim["nodeClassRef"]["name"] == "gpu"
        assert claim["resources"]["requests"]["nvidia.com/gpu"] == "4"

    def test_a_smaller_one_of_the_same_family_takes_two(self) -> None:
        plan = plan_of(self.CASE, ("{instanceType: g6e.12xlarge}", "{instanceType: g6e.2xlarge}"))
        assert verdict_of(plan)["perReplicaNodeCount"] == 2
        assert [each["kind"] for each in plan["create"]] == ["NodeClaim", "NodeClaim"]

    def test_not_beyond_the_limit_of_the_pool(self) -> None:
        reason, message = refused(plan_of(self.CASE, ('nvidia.com/gpu: "8"', 'nvidia.com/gpu: "2"')))
        assert reason == "LimitExceeded"
        assert "gpu-l40s" in message

    def test_a_type_that_nobody_knows(self) -> None:
        reason, message = refused(plan_of(self.CASE, ("{instanceType: g6e.12xlarge}", "{instanceType: g6e.13xlarge}")))
        assert reason == "UnsupportedInstanceType"
        assert "g6e.12xlarge" in message


class TestSizeOfQuantizedModels:
    CASE = "gpt-oss-byo"

    def test_on_one_gpu_of_80_gib(self) -> None:
        verdict = verdict_of(plan_of(self.CASE))
        assert verdict["accepted"]
        assert verdict["targetNodeCount"] == 1

    def test_the_small_one_on_24_gib(self) -> None:
        small = (("NVIDIA-H100-80GB-HBM3", "NVIDIA-L4"), ('"81559"', '"23034"'), ("gpt-oss-120b", "gpt-oss-20b"))
        assert verdict_of(plan_of(self.CASE, *small))["nodes"] == ["h100-1"]

    def test_not_on_46_gib(self) -> None:
        other = (("NVIDIA-H100-80GB-HBM3", "NVIDIA-L40S"), ('"81559"', '"46068"'))
        assert refused(plan_of(self.CASE, *other))[0] == "InsufficientGPUMemory"


class TestMirror:
    CASE = "hub-mirror-air-gapped"

    def variables(self, *changes: tuple[str, str]) -> dict[str, str]:
        (container,) = server(plan_of(self.CASE, *changes))["containers"]
        return {each["name"]: each.get("value", "") for each in container["env"]}

    def test_the_pods_use_it(self) -> None:
        assert self.variables()["HF_ENDPOINT"] == "https://hf-mirror.internal"

    def test_pull_secrets_of_the_environment_and_the_workspace(self) -> None:
        image = "inferenceImage: registry.internal/vllm-openai:v0.32.0"
        spec = server(
            plan_of(
                self.CASE,
                (image, f"{image}\n  presetPods: {{imagePullSecrets: [all]}}"),
                ("inference: {preset", "inference: {pods: {imagePullSecrets: [own]}, preset"),
            )
        )
        assert spec["imagePullSecrets"] == [{"name": "all"}, {"name": "own"}]
        assert spec["containers"][0]["image"] == "registry.internal/vllm-openai:v0.32.0"

    def test_a_variable_of_the_workspace_counts_more(self) -> None:
        own = "inference: {pods: {env: [{name: HF_ENDPOINT, value: https://own.internal}]}, preset"
        assert self.variables(("inference: {preset", own))["HF_ENDPOINT"] == "https://own.internal"


class TestStuckNodeClaim:
    CASE = "nodeclaim-stuck-deleting-limit"

    def test_what_is_in_the_way(self) -> None:
        plan = plan_of(self.CASE)
        assert plan["create"] == []
        (warning,) = plan["warnings"]
        for named in ("LimitExceeded", "chat-1", "2026-11-23T10:00:00Z", "karpenter.sh/termination"):
            assert named in warning

    def test_its_explanation_names_it_too(self) -> None:
        done = plimsoll("why", "workspace", "team/chat", "-f", "-", "-o", "json", given=text_of(self.CASE))
        links = {each["step"]: each["text"] for each in json.loads(done.stdout)["why"]["links"]}
        assert "karpenter.sh/termination" in links["Order"]

    def test_room_for_another_one(self) -> None:
        assert created(plan_of(self.CASE, ("limits: {nodes: 1}", "limits: {nodes: 2}")), "NodeClaim")

    def test_one_that_stays_is_its_node(self) -> None:
        plan = plan_of(self.CASE, ('  deletionTimestamp: "2026-11-23T10:00:00Z"\n', ""))
        assert "NodeClaim" not in {each["kind"] for each in plan["create"]}
        assert not any("LimitExceeded" in warning for warning in plan["warnings"])


class TestConstraintsOfThePool:
    CASE = "nodepool-constraints-not-inherited"

    def test_all_of_them(self) -> None:
        plan = plan_of(self.CASE)
        labels = required(plan)
        assert labels["karpenter.k8s.aws/instance-family"] == ["g6"]
        assert labels[ZONE] == ["eu-west-1a"]
        assert labels[CAPACITY] == ["on-demand"]
        taint = {"key": "team-only", "value": "ml", "effect": "NoSchedule"}
        assert taint in created(plan, "NodeClaim")["spec"]["taints"]

    def test_lifetime_and_startup_taints(self) -> None:
        more = (
            "expireAfter: 48h\n      terminationGracePeriod: 1h\n      startupTaints: [{key: cni, effect: NoExecute}]"
        )
        spec = created(plan_of(self.CASE, ("      taints:", f"      {more}\n      taints:")), "NodeClaim")["spec"]
        assert spec["expireAfter"] == "48h"
        assert spec["terminationGracePeriod"] == "1h"
        assert spec["startupTaints"] == [{"key": "cni", "effect": "NoExecute"}]

    def test_not_those_of_a_pool_without_the_type(self) -> None:
        plan = plan_of(self.CASE, ("instanceType: g6.12xlarge", "instanceType: g5.12xlarge"))
        assert ZONE not in required(plan)
        assert created(plan, "NodeClaim")["spec"]["nodeClassRef"]["name"] == "default"


class TestZoneOfVolumes:
    CASE = "pvc-zone"

    def test_where_the_volume_is(self) -> None:
        assert required(plan_of(self.CASE))[ZONE] == ["eu-west-1a"]

    def test_a_volume_of_two_zones(self) -> None:
        plan = plan_of(self.CASE, ("values: [eu-west-1a]", "values: [eu-west-1a, eu-west-1b]"))
        assert required(plan)[ZONE] == ["eu-west-1a", "eu-west-1b"]

    def test_another_zone_than_the_workspace_wants(self) -> None:
        change = ("{instanceType: g6.12xlarge}", "{instanceType: g6.12xlarge, zones: [eu-west-1b]}")
        reason, message = refused(plan_of(self.CASE, change))
        assert reason == "InvalidSpec"
        assert ZONE in message

    def test_a_volume_without_room_for_the_files(self) -> None:
        reason, message = refused(plan_of(self.CASE, ("storage: 200Gi}", "storage: 20Gi}")))
        assert reason == "InvalidSpec"
        assert "'models'" in message


class TestRollout:
    CASE = "rollout-strategy"
    OF_DEPLOYMENTS = "rolloutStrategy: {maxSurge: 1, maxUnavailable: 0}"
    ENVIRONMENT = """
apiVersion: plimsoll.dev/v1alpha1
kind: Environment
spec: {nodeAutoProvisioning: enabled}
"""
    BOUGHT = ("{labelSelector: {matchLabels: {pool: a}}}", "{instanceType: g6.xlarge}")

    def test_a_field_that_does_not_exist_is_named(self) -> None:
        done = plimsoll("plan", "-f", "-", given=text_of(self.CASE))
        assert done.returncode == 1
        assert "spec.inference.rolloutStrategy" in done.stderr

    def test_surge_is_known_and_needs_its_limit(self) -> None:
        surge = (self.OF_DEPLOYMENTS, "rollout: {strategy: Surge, maxSurge: 1}")
        assert created(plan_of(self.CASE, surge, self.BOUGHT, more=self.ENVIRONMENT), "NodeClaim")
        limited = (self.BOUGHT[0], "{instanceType: g6.xlarge, nodeCountLimit: 1}")
        reason, message = refused(plan_of(self.CASE, surge, limited, more=self.ENVIRONMENT))
        assert reason == "LimitExceeded"
        assert "during a rollout" in message

    def test_a_surge_of_pods_that_keep_their_names(self) -> None:
        change = (self.OF_DEPLOYMENTS, "rollout: {strategy: Surge}, stableIdentity: true")
        assert refused(plan_of(self.CASE, change, self.BOUGHT, more=self.ENVIRONMENT))[0] == "NotSupported"


class TestTemplateBeyondType:
    CASE = "template-cpu-memory-beyond-type"
    LARGER = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: large}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.azure.com, kind: AKSNodeClass, name: large}
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [Standard_NC24ads_A100_v4]}
---
apiVersion: plimsoll.dev/v1alpha1
kind: NodeProfile
metadata: {name: large.standard-nc24ads-a100-v4}
spec:
  nodePool: large
  instanceType: Standard_NC24ads_A100_v4
  allocatable: {cpu: "256", memory: 2000Gi}
"""

    @pytest.mark.parametrize(
        ("requests", "named"),
        [('cpu: "206", memory: 1500Gi', "206 CPUs"), ('cpu: "20", memory: 1500Gi', "memory"), ('cpu: "24"', "24 CPUs")],
    )
    def test_refused_before_anything_is_bought(self, requests: str, named: str) -> None:
        reason, message = refused(plan_of(self.CASE, ('cpu: "206", memory: 1500Gi', requests)))
        assert reason == "InvalidSpec"
        assert named in message
        assert "Standard_NC24ads_A100_v4" in message

    def test_what_the_type_has_is_bought(self) -> None:
        plan = plan_of(self.CASE, ('cpu: "206", memory: 1500Gi', 'cpu: "20", memory: 100Gi'))
        assert created(plan, "NodeClaim")

    def test_a_node_profile_says_more(self) -> None:
        assert created(plan_of(self.CASE, more=self.LARGER), "NodeClaim")


def test_every_case_is_read_here() -> None:
    here = Path(__file__).read_text()
    names = [each.stem for each in shared("cases/workspaces").glob("*.yaml")]
    assert not [name for name in names if f'"{name}"' not in here]

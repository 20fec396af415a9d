"""A Pulumi program in YAML uses the component package on a real cluster."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.sandbox import Sandbox
from plimsoll.sandbox.parts import Installation, find_programs, missing_programs, part
from tests.e2e.cluster.kube import Kube
from tests.e2e.programs.stacks import PulumiFolder, component_package
from tests.pages import CHECKOUT

pytestmark = pytest.mark.e2e

SECRET = "4dabf18193072939515e22adb298388d"
PROGRAM = """
name: in-yaml
runtime: yaml
plugins:
  providers:
    - name: plimsoll
      path: {components}
resources:
  yaml-research:
    type: plimsoll:index:Queue
    properties:
      displayName: {{ fn::secret: for research only }}
      resources:
        gpu: {{ quota: 8, limit: 16 }}
  yaml-training:
    type: plimsoll:index:Queue
    properties:
      parentQueue: ${{yaml-research.queueName}}
      resources:
        gpu: {{ quota: 4 }}
    options:
      protect: false
      ignoreChanges: [spec.priority]
  yaml-gpu:
    type: plimsoll:index:NodePool
    properties:
      nodeClassRef: {{ group: karpenter.kwok.sh, kind: KWOKNodeClass }}
      labels: {{ queue: "${{yaml-training.queueName}}" }}
      requirements:
        - {{ key: karpenter.sh/capacity-type, operator: In, values: [on-demand, {{ fn::secret: spot }}] }}
  yaml-gpus:
    type: plimsoll:index:DeviceClass
    properties:
      selectors: [{{ cel: {{ expression: "device.driver == 'gpu.example.com'" }} }}]
  yaml-claim:
    type: plimsoll:index:ResourceClaimTemplate
    properties:
      devices:
        requests: [{{ name: gpu, exactly: {{ deviceClassName: "${{yaml-gpus.deviceClassName}}", count: 1 }} }}]
outputs:
  labels: ${{yaml-training.podLabels}}
"""


@pytest.fixture
def project(nap_sandbox: Sandbox, tmp_path: Path) -> PulumiFolder:
    Installation(missing_programs(find_programs(["pulumi-language-yaml"]))).run()
    host = part("pulumi-language-yaml").cached
    (tmp_path / "Pulumi.yaml").write_text(PROGRAM.format(components=component_package(tmp_path / "plimsoll")))
    state = tmp_path / "state"
    state.mkdir()
    path = f"{host}:{nap_sandbox.environ()['PATH']}"
    return PulumiFolder(nap_sandbox, tmp_path, PATH=path, PULUMI_BACKEND_URL=f"file://{state}")


def test_a_yaml_program_is_deployed(project: PulumiFolder, nap_sandbox: Sandbox, kube: Callable[..., Kube]) -> None:
    project.init("dev")
    project.up("dev", "--skip-preview")
    cluster = kube(nap_sandbox)
    try:
        training = cluster.get("scheduling.run.ai/v2", "Queue", "yaml-training", "")
        assert training is not None
        assert training["spec"]["parentQueue"] == "yaml-research"
        pool = cluster.get("karpenter.sh/v1", "NodePool", "yaml-gpu", "")
        assert pool is not None
        assert pool["spec"]["template"]["metadata"]["labels"] == {"queue": "yaml-training"}
        project.preview("dev", "--expect-no-changes")
        labels = json.loads(project.pulumi("stack", "output", "--json"))["labels"]
        assert labels == {"kai.scheduler/queue": "yaml-training"}
        specs = specs_in_state(project)
        pool_spec = specs["yaml-gpu"]["template"]["spec"]
        assert SECRET in pool_spec["requirements"], "the plugin keeps a list with a secret secret as a whole"
        assert pool_spec["nodeClassRef"]["name"] == "default"
        hidden = specs["yaml-research"]
        assert SECRET in hidden.pop("displayName")
        assert hidden["resources"]["gpu"]["limit"] == 16
        assert claimed(cluster) == ("yaml-gpus", 1)
        change(project, "count: 1", "count: 2")
        project.up("dev", "--skip-preview")
        assert claimed(cluster) == ("yaml-gpus", 2), "the template, which cannot be changed, is replaced"
    finally:
        project.destroy("dev")


def claimed(cluster: Kube) -> tuple[str, int]:
    template = cluster.get("resource.k8s.io/v1", "ResourceClaimTemplate", "yaml-claim", "default")
    assert template is not None
    exactly = template["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    return exactly["deviceClassName"], exactly["count"]


def change(project: PulumiFolder, old: str, new: str) -> None:
    program = project.folder / "Pulumi.yaml"
    program.write_text(program.read_text().replace(old, new))


def test_invalid_properties_are_named(project: PulumiFolder) -> None:
    """Of two resources; the fields of one are spelled as in the custom resources, and reach the component."""
    program = yaml.safe_load((project.folder / "Pulumi.yaml").read_text())
    program["resources"]["yaml-research"]["properties"]["resources"]["gpu"]["limit"] = 2
    del program["resources"]["yaml-research"]["properties"]["displayName"]
    template = {"spec": {"containers": [{"name": "main", "image": "own:1"}]}}
    inference = {"template": template, "gpuMemoryGiB": -1}
    program["resources"]["own"] = {"type": "plimsoll:index:Workspace", "properties": {"inference": inference}}
    (project.folder / "Pulumi.yaml").write_text(yaml.safe_dump(program))
    project.init("wrong")
    output = project.preview("wrong", fails=True)
    assert "Queue yaml-research: resources.gpu: limit 2 is below quota 8" in output
    assert "Workspace own: inference.gpu_memory_gib: Input should be greater than 0" in output, "it is passed on"
    assert 'File "' not in output, "no traceback"


def test_a_training_is_placed_near_a_data_cache(project: PulumiFolder) -> None:
    program = yaml.safe_load((project.folder / "Pulumi.yaml").read_text())
    pods = {"spec": {"containers": [{"name": "node", "image": "own:1"}]}}
    jobs = [{"name": "node", "template": {"spec": {"template": pods}}}]
    table = {"metadataLocation": "s3://m", "schemaName": "s", "tableName": "t"}
    program["resources"] = {
        "cache": {
            "type": "plimsoll:index:DataCache",
            "properties": {"table": table, "queue": "q", "topology": "racks", "level": "rack"},
        },
        "torch": {
            "type": "plimsoll:index:TrainingRuntime",
            "properties": {"template": {"spec": {"replicatedJobs": jobs}}, "near": "${cache.near}"},
        },
    }
    program["outputs"] = {"near": "${cache.near}"}
    (project.folder / "Pulumi.yaml").write_text(yaml.safe_dump(program))
    project.init("near")
    output = project.preview("near", "--diff")
    assert "podAffinity" in output


def test_the_committed_schema_is_the_one_that_pulumi_prints(project: PulumiFolder, tmp_path: Path) -> None:
    """From the package as an executable, because for its folder pulumi would first download the plugins of what it
    imports."""
    plugin = tmp_path / "pulumi-resource-plimsoll"
    plugin.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{CHECKOUT}/components/__main__.py" "$@"\n')
    plugin.chmod(0o755)
    printed = project.pulumi("package", "get-schema", str(plugin))
    committed = json.loads((CHECKOUT / "components" / "schema.json").read_text())
    assert json.loads(printed[printed.index("{") :]) == committed


def specs_in_state(project: PulumiFolder) -> dict[str, dict[str, Any]]:
    """`spec` of each object in the state, by the name of its resource."""
    exported = json.loads(project.pulumi("stack", "export", "--stack", "dev"))["deployment"]["resources"]
    inputs = {each["urn"].rpartition("::")[2]: each.get("inputs") or {} for each in exported}
    return {name: each["spec"] for name, each in inputs.items() if "spec" in each}

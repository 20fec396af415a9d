"""What `helm template` and `kustomize build` print is planned as it is, from standard input."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from plimsoll.cli import app
from tests.demand.node_pools import L4_POOL

CLUSTER = (
    L4_POOL
    + """apiVersion: plimsoll.dev/v1alpha1
kind: Environment
metadata: {name: prod}
spec: {demand: {provisioner: trigger-pod}}
"""
)
HELM = """---
# Source: chat/templates/serviceaccount.yaml
apiVersion: v1
kind: ServiceAccount
metadata:
  name: release-name-chat
  labels:
    helm.sh/chart: chat-0.4.1
    app.kubernetes.io/instance: release-name
automountServiceAccountToken: true
---
# Source: chat/templates/configmap.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: release-name-chat
data:
  config.yaml: |
    model: a
    ---
    not: a document
---
# Source: chat/templates/service.yaml
apiVersion: v1
kind: Service
metadata:
  name: release-name-chat
spec:
  type: ClusterIP
  ports:
    - port: 80
      targetPort: http
  selector:
    app.kubernetes.io/name: chat
---
# Source: chat/templates/deployment.yaml
apiVersion: apps/v1
kind: Deployment
metadata:
  name: release-name-chat
  labels:
    helm.sh/chart: chat-0.4.1
    app.kubernetes.io/managed-by: Helm
spec:
  replicas: 3
  selector:
    matchLabels:
      app.kubernetes.io/name: chat
  template:
    metadata:
      annotations:
        gpu-fraction: "0.9"
      labels:
        app.kubernetes.io/name: chat
        kai.scheduler/queue: default-queue
    spec:
      schedulerName: kai-scheduler
      serviceAccountName: release-name-chat
      securityContext:
        {}
      containers:
        - name: chat
          image: "example.com/chat:0.4.1"
          imagePullPolicy: IfNotPresent
          resources:
            {}
---
# Source: chat/templates/autoscaler.yaml
---
# Source: chat/templates/tests/test-connection.yaml
apiVersion: v1
kind: Pod
metadata:
  name: "release-name-chat-test-connection"
  annotations:
    "helm.sh/hook": test
spec:
  containers:
    - name: wget
      image: busybox
      command: ['wget']
      args: ['release-name-chat:80']
  restartPolicy: Never
"""
KUSTOMIZE = """apiVersion: v1
data:
  args: --epochs 3
kind: ConfigMap
metadata:
  name: prod-train-7hk5t9m2dc
  namespace: research
---
apiVersion: batch/v1
kind: Job
metadata:
  labels:
    kai.scheduler/queue: default-queue
  name: prod-train
  namespace: research
spec:
  completions: 4
  parallelism: 2
  template:
    metadata:
      annotations:
        gpu-fraction: "0.9"
    spec:
      containers:
      - envFrom:
        - configMapRef:
            name: prod-train-7hk5t9m2dc
        image: example.com/train:1
        name: main
      restartPolicy: Never
      schedulerName: kai-scheduler
"""
RENDERED = {"helm": (HELM, 3), "kustomize": (KUSTOMIZE, 2)}


def printed(standard_input: str, *words: str) -> Any:
    done = CliRunner().invoke(app, [*words, "-o", "json"], input=standard_input, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER)
    return str(file)


@pytest.mark.parametrize("tool", RENDERED)
def test_rendered_workloads_are_the_pods_that_run_at_once(tool: str, cluster: str) -> None:
    text, pods = RENDERED[tool]
    found = printed(text, "demand", "-f", "-", "-f", cluster)
    assert [each["instanceType"] for each in found["requests"]] == ["g6.xlarge"] * pods


@pytest.mark.parametrize("tool", RENDERED)
def test_rendered_workloads_are_compared_with_what_they_add_to(tool: str, cluster: str) -> None:
    text, pods = RENDERED[tool]
    found = printed(text, "diff", "-", cluster, "--against", cluster)
    assert (found["before"]["nodes"], found["after"]["nodes"]) == (0, pods)
    assert found["after"]["pricePerHour"] > 0

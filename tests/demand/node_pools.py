"""Manifests of NodePools."""

L4_POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: l4}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [g6.xlarge]}]
---
"""
"""Nodes with one L4."""

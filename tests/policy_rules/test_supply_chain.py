"""Images with versions or digests, charts with one exact version."""

from typing import Any

import pytest

from tests.policy_rules.manifests import (
    Manifest,
    a_deployment,
    a_kaito_workspace,
    a_pod,
    an_environment,
    broken,
    findings,
    with_path,
)

DIGEST = "@sha256:" + "0123456789abcdef" * 4
IMAGE_VOLUME = {"name": "model", "image": {"reference": "models/phi"}}


@pytest.mark.parametrize(
    ("image", "pinned"),
    [
        ("nginx:1.2.3", True),
        ("registry.example:5000/team/nginx:1.2", True),
        (f"nginx{DIGEST}", True),
        (f"nginx:latest{DIGEST}", True),
        ("nginx", False),
        ("nginx:latest", False),
        ("nvcr.io/nvidia/pytorch:latest-py3", False),
        ("registry.example:5000/team/nginx", False),
        ("registry.example:5000/team/nginx:latest", False),
        ("nginx@sha256:abc", False),
        ("latest:1.0", True),
    ],
)
def test_an_image_has_a_version_or_a_digest(image: str, pinned: bool) -> None:
    assert broken(a_pod(image=image)) == ([] if pinned else [("image-tag-pinned", "spec.containers[0].image")])


def test_every_container_and_template_is_checked() -> None:
    pod = a_pod(image="a")
    pod["spec"]["initContainers"] = [{"name": "init", "image": "b:latest"}]
    assert [field for _, field in broken(a_deployment(pod))] == [
        "spec.template.spec.containers[0].image",
        "spec.template.spec.initContainers[0].image",
    ]


def test_the_image_of_a_volume_is_checked() -> None:
    pod = with_path(a_pod(), spec__volumes=[{"name": "a", "emptyDir": {}}, IMAGE_VOLUME])
    assert broken(pod, a_deployment(pod)) == [
        ("image-tag-pinned", "spec.volumes[1].image.reference"),
        ("image-tag-pinned", "spec.template.spec.volumes[1].image.reference"),
    ]


def test_the_image_of_a_train_job_is_checked() -> None:
    spec = {"runtimeRef": {"name": "torch"}, "trainer": {"image": "own"}}
    job = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "t"}, "spec": spec}
    assert broken(job) == [("image-tag-pinned", "spec.trainer.image")]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        (
            {"inference": {"preset": {"name": "a", "presetOptions": {"image": "own"}}}},
            "inference.preset.presetOptions.image",
        ),
        ({"inference": None, "tuning": {"input": {"image": "data:latest"}}}, "tuning.input.image"),
        (
            {"inference": {"preset": {"name": "phi-4"}, "adapters": [{"source": {"name": "a", "image": "lora"}}]}},
            "inference.adapters[0].source.image",
        ),
        (
            {"inference": {"preset": {"name": "phi-4"}, "adapters": [{"source": {"volumeSource": IMAGE_VOLUME}}]}},
            "inference.adapters[0].source.volumeSource.image.reference",
        ),
        (
            {"inference": {"preset": {"name": "phi-4"}, "weights": {"volumeSource": IMAGE_VOLUME}}},
            "inference.weights.volumeSource.image.reference",
        ),
        (
            {"inference": {"template": {"spec": {"containers": [{"name": "a", "image": "own:latest"}]}}}},
            "inference.template.spec.containers[0].image",
        ),
    ],
)
def test_images_of_a_workspace(changes: dict[str, Any], field: str) -> None:
    assert broken(a_kaito_workspace(**changes)) == [("image-tag-pinned", field)]


def test_the_images_of_the_environment() -> None:
    weights = {"volumeSource": IMAGE_VOLUME}
    assert broken(an_environment(inferenceImage="vllm/vllm-openai:latest", weights=weights)) == [
        ("image-tag-pinned", "spec.inferenceImage"),
        ("image-tag-pinned", "spec.weights.volumeSource.image.reference"),
    ]


def test_a_digest_is_required_by_the_option() -> None:
    everywhere = {"image-digest": {"options": {"required": True}}}
    there = {"image-digest": {"options": {"required": True, "namespaces": ["production"]}}}
    pod = a_pod(image="nginx:1.2.3")
    assert broken(pod, rules=everywhere) == [("image-digest", "spec.containers[0].image")]
    assert broken(pod, rules=there) == []
    assert broken(a_pod(image=f"nginx{DIGEST}"), rules=everywhere) == []


@pytest.mark.parametrize("image", ["nginx", "nginx:latest", "nginx@sha256:abc"])
def test_a_required_digest_is_missed_by_an_image_without_a_version(image: str) -> None:
    rules = {"image-digest": {"options": {"required": True}}, "image-tag-pinned": {"severity": "off"}}
    assert [rule for rule, _ in broken(a_pod(image=image), rules=rules)] == ["image-digest"]


def values(**given: Any) -> Manifest:
    return {"apiVersion": "v2", "kind": "Values", "metadata": {"name": "values"}, "values": given}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (values(image={"repository": "a", "tag": "latest"}), "image.tag"),
        (values(gfd={"image": {"registry": "r", "repository": "a", "tag": "latest"}}), "gfd.image.tag"),
        (values(image="a:latest"), "image"),
        (values(sidecars=[{"image": "a"}]), "sidecars[0].image"),
    ],
)
def test_images_of_a_charts_values(given: Manifest, field: str) -> None:
    assert broken(given) == [("image-tag-pinned", field)]


def test_without_a_tag_in_the_values_the_chart_version_counts() -> None:
    assert broken(values(image={"repository": "nvcr.io/nvidia/k8s-device-plugin", "tag": ""})) == []


def a_chart_file(version: str | None, repository: str = "https://charts.example") -> Manifest:
    dependency = {"name": "nvidia-device-plugin", "version": version, "repository": repository}
    return {"apiVersion": "v2", "kind": "Chart.yaml", "metadata": {"name": "c"}, "dependencies": [dependency]}


def an_application(revision: str) -> Manifest:
    source = {"chart": "gpu-operator", "repoURL": "https://charts.example", "targetRevision": revision}
    spec = {"source": source}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "a"}, "spec": spec}


def a_helm_release(version: str | None) -> Manifest:
    chart = {"spec": {"chart": "a", "sourceRef": {"kind": "HelmRepository"}, "version": version}}
    metadata = {"name": "a"}
    return {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": metadata, "spec": {"chart": chart}}  # fmt: skip # noqa: E501


@pytest.mark.parametrize("version", ["0.17.2", "v25.3.4", "1.0.0-rc.1", "1.2.3+build.5"])
def test_an_exact_version_is_valid(version: str) -> None:
    assert broken(a_chart_file(version), an_application(version), a_helm_release(version)) == []


@pytest.mark.parametrize("version", ["^0.17.2", "~1.2", "1.x", "*", ">=1.0.0", "1.2", "latest", "0.17.2 - 0.18.0"])
def test_a_version_range_is_a_finding(version: str) -> None:
    assert broken(a_chart_file(version), an_application(version), a_helm_release(version)) == [
        ("chart-version-pinned", "dependencies[0].version"),
        ("chart-version-pinned", "spec.source.targetRevision"),
        ("chart-version-pinned", "spec.chart.spec.version"),
    ]


def test_a_missing_version_is_named_with_its_chart() -> None:
    (found,) = findings(a_helm_release(None))
    assert "the version of chart a is not set" in found.message


@pytest.mark.parametrize(
    ("spec", "wrong"),
    [
        ({"repo": "https://charts.example", "chart": "a"}, True),
        ({"chartContent": "H4sIAAAAAAAA"}, False),
        ({"chart": "https://charts.example/a-1.2.3.tgz"}, False),
    ],
    ids=["of a repository", "its contents", "one file"],
)
def test_a_helm_chart_of_k3s_has_a_version_if_it_is_of_a_repository(spec: Manifest, wrong: bool) -> None:
    chart = {"apiVersion": "helm.cattle.io/v1", "kind": "HelmChart", "metadata": {"name": "a"}, "spec": spec}
    assert broken(chart) == [("chart-version-pinned", "spec.version")] * wrong


def test_a_chart_of_the_same_repository_needs_no_version() -> None:
    assert broken(a_chart_file(None, "file://../common")) == []

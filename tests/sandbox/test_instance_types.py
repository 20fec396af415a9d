from plimsoll.sandbox.nodes import instance_types


def labels_of(name: str) -> list[dict[str, str]]:
    [entry] = [e for e in instance_types() if e["name"] == name]
    return [{r["key"]: r["values"][0] for r in o["Requirements"] if r["operator"] == "In"} for o in entry["offerings"]]


def test_a_gpu_type_offers_the_labels_of_its_gpus_in_each_zone() -> None:
    first, second = labels_of("p4d.24xlarge")

    assert first["nvidia.com/gpu.product"] == "NVIDIA-A100-SXM4-40GB"
    assert (first["nvidia.com/gpu.count"], first["nvidia.com/gpu.memory"]) == ("8", "40960")
    assert first["topology.kubernetes.io/zone"] != second["topology.kubernetes.io/zone"]


def test_a_type_without_gpus_has_no_product() -> None:
    [entry] = [e for e in instance_types() if e["name"] == "m5.xlarge"]

    assert "nvidia.com/gpu" not in entry["resources"]
    for offering in entry["offerings"]:
        assert {"key": "nvidia.com/gpu.product", "operator": "DoesNotExist"} in offering["Requirements"]


def test_every_type_has_a_unique_name() -> None:
    names = [e["name"] for e in instance_types()]

    assert len(names) == len(set(names))

"""CEL expressions of selectors: those of Kubernetes' documentation and of the drivers' examples."""

import pytest

from plimsoll.cluster.claims import NotEvaluatedError, SelectorError, selects
from plimsoll.model.dra import Attribute, Claimable
from tests.claims.expressions import EXPRESSIONS, Answer


def a_device(driver: str, memory: str, **attributes: bool | int | str) -> Claimable:
    kinds = {bool: "bool", int: "int", str: "string"}
    found = [
        Attribute(
            f"{driver}/{name}", "version" if name.endswith(("Capability", "Version")) else kinds[type(value)], value
        )
        for name, value in attributes.items()
    ]
    return Claimable(driver, tuple(sorted(found)), ((f"{driver}/memory", memory),))


L4 = a_device(
    "gpu.nvidia.com", "23034Mi", productName="NVIDIA L4", architecture="Ada Lovelace", type="gpu", brand="Nvidia",
    cudaComputeCapability="8.9.0",
)  # fmt: skip
MI300X = a_device(
    "gpu.amd.com", "196592Mi", productName="AMD_Instinct_MI300X_OAM", family="AI", type="amdgpu",
    partitionProfile="spx_nps1",
)  # fmt: skip
ARC = a_device("gpu.intel.com", "16288Mi", model="A770", family="Arc", sriov=True)
CAT = a_device("resource-driver.example.com", "1Gi", color="black", size="large")


@pytest.mark.parametrize(
    ("device", "expression", "selected"),
    [
        (CAT, "device.driver == 'resource-driver.example.com'", True),
        (CAT, "device.attributes['resource-driver.example.com'].color == 'black' && "
              "device.attributes['resource-driver.example.com'].size == 'large'", True),
        (CAT, "device.attributes['resource-driver.example.com'].color == 'white'", False),
        (MI300X, "device.driver == 'gpu.amd.com' && device.attributes['gpu.amd.com'].type == 'amdgpu'", True),
        (MI300X, "device.attributes['gpu.amd.com'].partitionProfile == 'spx_nps1'", True),
        (MI300X, "device.attributes['gpu.amd.com'].productName.contains('MI300X')", True),
        (ARC, "device.driver == 'gpu.intel.com'", True),
        (ARC, "device.attributes['gpu.intel.com'].sriov", True),
        (ARC, "device.attributes['gpu.intel.com'].family == 'Arc' && "
              "device.capacity['gpu.intel.com'].memory.compareTo(quantity('10Gi')) >= 0", True),
    ],
)  # fmt: skip
def test_an_expression_selects_a_device(device: Claimable, expression: str, selected: bool) -> None:
    assert selects(expression, device) is selected


@pytest.mark.parametrize(("expression", "answer"), EXPRESSIONS)
def test_an_expression_has_the_documented_answer(expression: str, answer: Answer) -> None:
    try:
        found: Answer = "selects" if selects(expression, L4) else "not"
    except SelectorError:
        found = "ends"
    assert found == answer


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("device.attributes['gpu.nvidia.com'].profile == '1g.10gb'", "profile"),
        ("device.attributes['dra.net'].rdma", "rdma"),
        ("device.capacity['gpu.nvidia.com'].shares.isGreaterThan(quantity('1'))", "shares"),
        ("device.attributes['gpu.nvidia.com'].productName > 1", ".+"),
        ("device.attributes['gpu.nvidia.com'].productName", "true or false"),
        ("quantity('many').isGreaterThan(quantity('1'))", "many"),
    ],
)
def test_an_error_ends_an_attempt_as_in_the_scheduler(expression: str, said: str) -> None:
    with pytest.raises(SelectorError, match=said):
        selects(expression, L4)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("device.attributes['gpu.nvidia.com'].uuid == 'GPU-1'", "attribute uuid"),
        ("!('uuid' in device.attributes['gpu.nvidia.com'])", "attribute uuid"),
        ("device.attributes['gpu.nvidia.com']['driverVersion'] == semver('580.0.0')", "attribute driverVersion"),
        ("device.attributes['resource.kubernetes.io'].pcieRoot == 'pci0000:01'", "attribute pcieRoot"),
        ("device.attributes['gpu.nvidia.com'].?uuid.hasValue()", "attribute uuid"),
        ("device.attributes['gpu.nvidia.com'].?tier.optMap(tier, tier == 'gold').orValue(true)", "tier"),
        ("device.attributes['gpu.nvidia.com'].size() > 8", "a domain together"),
        ("size(device.attributes['gpu.nvidia.com']) > 8", "a domain together"),
        ("device.attributes['gpu.nvidia.com'].exists(name, name == 'tier')", "a domain together"),
        ("'gpu.nvidia.com' in device.attributes", "all domains"),
        ("device.attributes.exists(domain, domain == 'dra.net')", "all domains"),
        ("cel.bind(all, device.attributes, size(all) == 1)", "all domains"),
        ("device.attributes['gpu.nvidia.com'].productName.find('L4') == 'L4'", "find"),
        ("ip('10.0.0.1').family() == 4", "ip"),
        ("device.driver ==", "selector"),
    ],
)
def test_what_is_not_evaluated_is_told_by_name(expression: str, said: str) -> None:
    with pytest.raises(NotEvaluatedError, match=said):
        selects(expression, L4)


@pytest.mark.parametrize(
    "form", ["[{}.?a.hasValue(), MANY].size() > 0", "'x' in ['.?a', MANY]", "cel.bind(a, 1, MANY)"]
)
def test_expressions_that_take_long_to_read_are_not_evaluated(form: str) -> None:
    """A tenant may write hundreds of them."""
    part = form.partition("[")[2].partition(",")[0] or "cel.bind(b, 2, b) == 2 && true"
    for many in (70, 1000):
        with pytest.raises(NotEvaluatedError, match="more than 64"):
            selects(form.replace("MANY", ", ".join([part] * many) if "[" in form else " && ".join([part] * many)), L4)


def test_a_text_with_marks_of_optional_fields_is_a_text() -> None:
    assert not selects("['.?a', '[?'].exists(mark, mark == device.driver)", L4)

"""CEL expressions of selectors: those of Kubernetes' documentation and of the drivers' examples."""

import pytest

from plimsoll.cluster.claims import NotEvaluatedError, SelectorError, selects
from plimsoll.model.dra import Attribute, Claimable


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
        (L4, "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'", True),
        (L4, "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'", False),
        (L4, "device.attributes['gpu.nvidia.com'].productName.lowerAscii().matches('^.*a100.*$')", False),
        (L4, "device.attributes['gpu.nvidia.com'].productName.lowerAscii().matches('^.*l4.*$')", True),
        (L4, "device.attributes['gpu.nvidia.com'].brand == 'Nvidia' && "
             "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('16Gi')) > 0", True),
        (L4, "device.capacity['gpu.nvidia.com'].memory.isGreaterThan(quantity('40Gi'))", False),
        (L4, "device.attributes['gpu.nvidia.com'].cudaComputeCapability.isGreaterThan(semver('8.0.0'))", True),
        (L4, "device.attributes['gpu.nvidia.com'].cudaComputeCapability.major() >= 9", False),
        (L4, "cel.bind(gpu, device.attributes['gpu.nvidia.com'], gpu.type == 'gpu' && gpu.productName == 'a, (b')",
         False),
        (L4, "cel.bind(a, device.attributes['gpu.nvidia.com'], cel.bind(b, a.productName, b.endsWith('L4')))", True),
        (MI300X, "device.driver == 'gpu.amd.com' && device.attributes['gpu.amd.com'].type == 'amdgpu'", True),
        (MI300X, "device.attributes['gpu.amd.com'].partitionProfile == 'spx_nps1'", True),
        (MI300X, "device.attributes['gpu.amd.com'].productName.contains('MI300X')", True),
        (ARC, "device.driver == 'gpu.intel.com'", True),
        (ARC, "device.attributes['gpu.intel.com'].sriov", True),
        (ARC, "device.attributes['gpu.intel.com'].family == 'Arc' && "
              "device.capacity['gpu.intel.com'].memory.compareTo(quantity('10Gi')) >= 0", True),
        (L4, "'rdma' in device.attributes['dra.net']", False),
        (L4, "has(device.attributes['dra.net'].rdma) && device.attributes['dra.net'].rdma", False),
        (L4, "device.attributes[device.driver].type == 'gpu'", True),
        (L4, "!device.allowMultipleAllocations", True),
        (L4, "semver('v1.2', true) == semver('1.2.0') && isSemver('x') == false", True),
        (L4, "quantity('1Gi') == quantity('1024Mi') && quantity('1k').add(24).sub(quantity('24')).asInteger() == 1000",
         True),
        (L4, "'a-b'.split('-').join('.') == 'a.b' && 'Abc'.substring(1).upperAscii() == 'BC'", True),
        (L4, "' x '.trim().charAt(0) == 'x' && 'abcabc'.lastIndexOf('c') == 5 && 'aa'.replace('a', 'b', 1) == 'ba'",
         True),
        (L4, "[1, 2, 3].sum() == 6 && ['a', 'b'].indexOf('b') == 1 && [1, 2].max() == 2", True),
    ],
)  # fmt: skip
def test_an_expression_selects_a_device(device: Claimable, expression: str, selected: bool) -> None:
    assert selects(expression, device) is selected


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
        ("device.attributes['gpu.nvidia.com'].?type.orValue('') == 'gpu'", r"'\.\?'"),
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

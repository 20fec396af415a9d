"""Selectors of devices that anyone may write, with what CEL in Kubernetes answers for an L4, as its scheduler does."""

from typing import Final, Literal

Answer = Literal["selects", "not", "ends"]
"""`ends`: an error, with which the scheduler ends its attempt to place the pod."""
_ATTRIBUTES: Final = "device.attributes['gpu.nvidia.com']"
_MEMORY: Final = "device.capacity['gpu.nvidia.com'].memory"
_WRITTEN: Final[tuple[tuple[Answer, str], ...]] = (
    ("selects", "device.driver == 'gpu.nvidia.com' && ATTRIBUTES.type == 'gpu'"),
    ("not", "device.driver == 'gpu.nvidia.com' && ATTRIBUTES.type == 'mig'"),
    ("selects", "device.driver in ['gpu.nvidia.com', 'gpu.amd.com']"),
    ("selects", "device.attributes[device.driver].type == 'gpu'"),
    ("selects", 'device.attributes["gpu.nvidia.com"]["productName"] == "NVIDIA L4" // its name'),
    ("not", "device.allowMultipleAllocations"),
    # Text
    ("not", "ATTRIBUTES.productName.lowerAscii().matches('^.*a100.*$')"),
    ("selects", "ATTRIBUTES.productName.lowerAscii().matches('^.*l4.*$')"),
    ("selects", "ATTRIBUTES.productName.matches('L[0-9]+S?$')"),
    ("selects", "ATTRIBUTES.productName.startsWith('NVIDIA') && ATTRIBUTES.productName.endsWith('L4')"),
    ("selects", "ATTRIBUTES.productName.split(' ')[1] == 'L4' && ATTRIBUTES.productName.size() == 9"),
    ("selects", "ATTRIBUTES.productName.replace('NVIDIA ', '') == 'L4' && ATTRIBUTES.productName.substring(7) == 'L4'"),
    ("selects", "ATTRIBUTES.productName.indexOf('L4') == 7 && ATTRIBUTES.productName.lastIndexOf('A') == 5"),
    ("selects", "ATTRIBUTES.brand.upperAscii() == 'NVIDIA' && ATTRIBUTES.brand.charAt(0) == 'N'"),
    ("selects", "('  ' + ATTRIBUTES.brand).trim() == ATTRIBUTES.brand"),
    ("not", "ATTRIBUTES.productName < 'NVIDIA A'"),
    ("ends", "ATTRIBUTES.brand.substring(4, 99) == 'ia'"),
    ("ends", "ATTRIBUTES.productName.split(' ')[2] == 'PCIe'"),
    ("ends", "ATTRIBUTES.productName > 1"),
    ("ends", "ATTRIBUTES.productName"),
    (
        "selects",
        "'a,b,c'.split(',', 2) == ['a', 'b,c'] && 'aaa'.replace('a', 'b', 2) == 'bba' && 'ab'.split('').size() == 2",
    ),
    ("selects", "'hello'.indexOf('l', 3) == 3 && 'hello'.lastIndexOf('l', 2) == 2 && 'hello'.indexOf('z', 9) == -1"),
    ("selects", "'größe'.substring(3) == 'ße' && 'größe'.charAt(2) == 'ö' && 'hello'.charAt(5) == ''"),
    ("selects", "ATTRIBUTES.productName.matches('(?i)^nvidia') && !ATTRIBUTES.productName.matches('^L4')"),
    ("ends", "'hello'.indexOf('l', ATTRIBUTES.type.size() - 4) == 2"),
    ("ends", "'hello'.charAt(6) == ''"),
    ("ends", "int(ATTRIBUTES.productName) == 4"),
    ("ends", "!ATTRIBUTES.productName"),
    # Lists
    ("selects", "ATTRIBUTES.architecture in ['Ada Lovelace', 'Hopper', 'Blackwell']"),
    ("selects", "['L4', 'L40S'].exists(name, ATTRIBUTES.productName.endsWith(name))"),
    ("selects", "['NVIDIA', 'L4'].all(word, ATTRIBUTES.productName.contains(word))"),
    ("not", "['NVIDIA', 'L4'].exists_one(word, ATTRIBUTES.productName.contains(word))"),
    ("selects", "['a', 'L4'].filter(word, ATTRIBUTES.productName.contains(word)).size() == 1"),
    ("selects", "ATTRIBUTES.productName.split(' ').map(word, word.size()).sum() == 8"),
    ("selects", "[3, 1].min() == 1 && [3, 1].max() == 3"),
    ("selects", "{'NVIDIA L4': 24, 'Tesla T4': 16}[ATTRIBUTES.productName] >= 24"),
    ("ends", "{'Tesla T4': 16}[ATTRIBUTES.productName] >= 24"),
    ("not", "['a', 'b'].all(tier, tier == 'b' && ATTRIBUTES.tier == tier)"),
    ("ends", "['a', 'b'].exists(tier, ATTRIBUTES.tier == tier)"),
    ("ends", "[1, 2][ATTRIBUTES.type.size()] == 1"),
    ("selects", "[1, 2] + [3] == [1, 2, 3] && [1, 2].map(n, n > 1, n * 2) == [4]"),
    # Versions
    ("selects", "ATTRIBUTES.cudaComputeCapability.isGreaterThan(semver('8.0.0'))"),
    ("not", "ATTRIBUTES.cudaComputeCapability.isLessThan(semver('8.9.0'))"),
    ("selects", "ATTRIBUTES.cudaComputeCapability.compareTo(semver('8.9.0')) == 0"),
    ("selects", "ATTRIBUTES.cudaComputeCapability == semver('8.9.0')"),
    ("selects", "ATTRIBUTES.cudaComputeCapability.compareTo(semver('8.9.0-rc.1')) > 0"),
    ("selects", "ATTRIBUTES.cudaComputeCapability.major() == 8 && ATTRIBUTES.cudaComputeCapability.minor() >= 9"),
    ("selects", "semver('v8.9', true) == ATTRIBUTES.cudaComputeCapability && !isSemver('8.9') && isSemver('8.9.0')"),
    ("selects", "semver('1.0.0+a') == semver('1.0.0+b')"),
    ("selects", "semver('1.2.3-alpha.1').isLessThan(semver('1.2.3-alpha.beta'))"),
    ("selects", "!isSemver('v1.0.0') && isSemver('v1.0', true) && !isSemver('01.2.3') && isSemver('01.2.3', true)"),
    ("not", "'8.9.0' == ATTRIBUTES.cudaComputeCapability"),
    ("ends", "ATTRIBUTES.cudaComputeCapability.isGreaterThan(semver('8.0'))"),
    ("ends", "ATTRIBUTES.productName.isGreaterThan(semver('8.0.0'))"),
    # Quantities
    ("selects", "MEMORY.compareTo(quantity('16Gi')) > 0"),
    ("not", "MEMORY.isGreaterThan(quantity('40Gi'))"),
    ("selects", "MEMORY.isLessThan(quantity('24Gi')) && MEMORY == quantity('23034Mi')"),
    ("selects", "sign(MEMORY.sub(quantity('20Gi'))) == 1 && MEMORY.add(1024).isGreaterThan(MEMORY)"),
    ("selects", "MEMORY.asInteger() / 1048576 == 23034 && MEMORY.isInteger() && MEMORY.asApproximateFloat() > 1e10"),
    ("selects", "isQuantity('10Gi') && !isQuantity('ten') && quantity('1.5Gi') == quantity('1536Mi')"),
    (
        "selects",
        "sign(quantity('-1')) == -1 && quantity('500m').isLessThan(quantity('1')) && !quantity('1.1').isInteger()",
    ),
    ("selects", "quantity('1e3') == quantity('1k') && quantity('1E') == quantity('1000P') && !isQuantity('1KiB')"),
    ("selects", "string(MEMORY.asInteger()) == '24152899584' && double(MEMORY.asInteger()) / 1073741824.0 > 22.0"),
    ("ends", "quantity('1.1').asInteger() == 1"),
    ("ends", "MEMORY.isGreaterThan(quantity('many'))"),
    ("ends", "device.capacity['gpu.nvidia.com'].shares.isGreaterThan(quantity('1'))"),
    # What may be missing
    ("ends", "ATTRIBUTES.tier == 'gold'"),
    ("not", "has(ATTRIBUTES.tier) && ATTRIBUTES.tier == 'gold'"),
    ("selects", "!has(ATTRIBUTES.tier) || ATTRIBUTES.tier == 'gold'"),
    ("selects", "ATTRIBUTES.tier == 'gold' || ATTRIBUTES.type == 'gpu'"),
    ("not", "ATTRIBUTES.type == 'mig' && ATTRIBUTES.profile == '1g.10gb'"),
    ("not", "ATTRIBUTES.tier == 'gold' && false"),
    ("not", "'rdma' in device.attributes['dra.net']"),
    ("ends", "device.attributes['dra.net'].rdma"),
    ("selects", "ATTRIBUTES.?tier.orValue('none') == 'none'"),
    ("selects", "ATTRIBUTES.?productName.orValue('') == 'NVIDIA L4'"),
    ("not", "ATTRIBUTES[?'tier'].hasValue()"),
    ("selects", "ATTRIBUTES.?tier.or(ATTRIBUTES.?type).value() == 'gpu'"),
    ("selects", "device.attributes[?'gpu.nvidia.com'].?productName.hasValue()"),
    ("selects", "device.attributes[?'gpu.nvidia.com'].productName.orValue('') == 'NVIDIA L4'"),
    ("not", "device.attributes[?'dra.net'].?rdma.orValue(false)"),
    ("selects", "device.capacity['gpu.nvidia.com'].?memory.orValue(quantity('0')).isGreaterThan(quantity('10Gi'))"),
    ("not", "ATTRIBUTES.?cudaComputeCapability.orValue(semver('0.0.0')).isLessThan(semver('8.0.0'))"),
    ("ends", "ATTRIBUTES.?tier.value() == 'gold'"),
    ("selects", "'tier' in ATTRIBUTES ? ATTRIBUTES.tier == 'gold' : true"),
    ("not", "ATTRIBUTES.productName == 4"),
    # Names, conditions, types
    ("selects", "cel.bind(gpu, ATTRIBUTES, gpu.type == 'gpu' && gpu.productName == 'NVIDIA L4')"),
    ("selects", "cel.bind(gpu, ATTRIBUTES, cel.bind(name, gpu.productName, name.endsWith('L4')))"),
    ("selects", "cel.bind(gpu, ATTRIBUTES, gpu.?tier.orValue('.?') == '.?')"),
    ("selects", "ATTRIBUTES.type == 'gpu' ? MEMORY.isGreaterThan(quantity('16Gi')) : false"),
    ("selects", "7 % 3 == 1 && -7 / 2 == -3 && -7 % 3 == -1 && dyn(1) == dyn(1.0)"),
    ("ends", "1 / (ATTRIBUTES.type.size() - 3) > 0"),
    ("ends", "9223372036854775807 + ATTRIBUTES.type.size() > 0"),
    ("selects", r"r'\d' == '\\d' && 'it\'s' != 'its' && '''a'b''' == 'a\'b'"),
    ("selects", "timestamp('2026-01-01T00:00:00Z') + duration('24h') == timestamp('2026-01-02T00:00:00Z')"),
)


def _whole(expression: str) -> str:
    return expression.replace("ATTRIBUTES", _ATTRIBUTES).replace("MEMORY", _MEMORY)


EXPRESSIONS: Final = tuple((_whole(expression), answer) for answer, expression in _WRITTEN)

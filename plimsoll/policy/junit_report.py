"""Findings as JUnit XML, which CI systems show as tests: a test suite for each file, a test case for each object."""

from collections.abc import Sequence
from typing import NamedTuple
from xml.etree import ElementTree

from plimsoll.policy.fields import Manifest, kind_of, name_of, namespace_of
from plimsoll.policy.located import Located


class Case(NamedTuple):
    file: str
    name: str
    found: tuple[Located, ...]


def cases(
    manifests: Sequence[Manifest], files: Sequence[str], found: Sequence[tuple[int | None, Located]]
) -> list[Case]:
    """A case for each object, and one for each finding without an object."""
    by_object: dict[int, list[Located]] = {}
    for position, located in found:
        if position is not None:
            by_object.setdefault(position, []).append(located)
    made = [
        Case(files[number], _subject(manifest), tuple(by_object.get(number, ())))
        for number, manifest in enumerate(manifests)
    ]
    made += [Case(each.file, each.finding.subject, (each,)) for position, each in found if position is None]
    return made


def junit(cases: Sequence[Case]) -> str:
    """The XML document; a case fails once, with all findings about its object."""
    suites: dict[str, list[Case]] = {}
    for case in cases:
        suites.setdefault(case.file, []).append(case)
    root = ElementTree.Element("testsuites", {"name": "plimsoll policy", **_counts(cases)})
    for file, inside in suites.items():
        suite = ElementTree.SubElement(root, "testsuite", {"name": _text(file), **_counts(inside)})
        for case in inside:
            element = ElementTree.SubElement(suite, "testcase", name=_text(case.name), classname=_text(file))
            if case.found:
                lines = [
                    f"{each.finding.severity} {each.finding.rule} {each.file}:{each.line} {each.finding.field}\n"
                    f"{each.finding.message}"
                    for each in case.found
                ]
                rules = ", ".join(dict.fromkeys(each.finding.rule for each in case.found))
                failure = ElementTree.SubElement(element, "failure", message=_text(rules), type="finding")
                failure.text = _text("\n".join(lines))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _subject(manifest: Manifest) -> str:
    namespace = namespace_of(manifest)
    return f"{kind_of(manifest)} {f'{namespace}/' if namespace else ''}{name_of(manifest)}"


def _counts(cases: Sequence[Case]) -> dict[str, str]:
    failed = sum(bool(case.found) for case in cases)
    return {"tests": str(len(cases)), "failures": str(failed), "errors": "0"}


def _text(value: str) -> str:
    """Without the characters that XML 1.0 does not allow."""
    return "".join(each if each in "\t\n" or ord(each) >= 0x20 else "?" for each in value)

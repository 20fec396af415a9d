"""Verifies an image's archive: `python -m image.archive FILE VERSION [SBOM]`, and writes its SBOM. Nothing is run.

No builder is needed."""

import io
import json
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from plimsoll.distribution import NAME
from plimsoll.errors import PlimsollError

SBOM: Final = "opt/plimsoll/sbom.cdx.json"
_ENTRY: Final = "/opt/plimsoll/bin/dumb-init"
_USER: Final = "65532:65532"


def verify(archive: Path, version: str) -> dict[str, Any]:
    """The SBOM (CycloneDX) of an OCI archive. Raises PlimsollError where it is not of that version."""
    with tarfile.open(archive) as file:
        index = _json(file, "index.json")
        manifest = _json(file, _blob(index["manifests"][0]))
        config = _json(file, _blob(manifest["config"]))["config"]
        found = {
            "the version": (config["Labels"].get("org.opencontainers.image.version"), version),
            "the user": (config["User"], _USER),
            "the entry point": (config["Entrypoint"][0], _ENTRY),
        }
        wrong = [f"{what} is {has!r} and not {wanted!r}" for what, (has, wanted) in found.items() if has != wanted]
        bill = _bill(file, manifest)
        components = {each["name"]: each["version"] for each in bill["components"]}
        if components.get(NAME) != version:
            wrong.append(f"its SBOM has {NAME} {components.get(NAME)!r}")
    if wrong:
        raise PlimsollError(f"{archive}: {'; '.join(wrong)}", "build it anew: make image")
    return bill


def _bill(file: tarfile.TarFile, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The SBOM, from the last layer that has it."""
    for layer in reversed(manifest["layers"]):
        blob = file.extractfile(_blob(layer))
        assert blob is not None
        with tarfile.open(fileobj=io.BytesIO(blob.read())) as content:
            names = {name.removeprefix("./"): name for name in content.getnames()}
            if SBOM in names:
                return _json(content, names[SBOM])
    raise PlimsollError(f"no layer has {SBOM}", "build it anew: make image")


def _blob(described: Mapping[str, Any]) -> str:
    algorithm, _, digest = described["digest"].partition(":")
    return f"blobs/{algorithm}/{digest}"


def _json(file: tarfile.TarFile, name: str) -> dict[str, Any]:
    content = file.extractfile(name)
    assert content is not None, name
    found: dict[str, Any] = json.load(content)
    return found


def main() -> int:
    file, version, *sbom = sys.argv[1:]
    try:
        bill = verify(Path(file), version)
        for path in sbom:
            Path(path).write_text(json.dumps(bill, indent=1) + "\n")
        sys.stdout.write(f"{file}: plimsoll {version}, {len(bill['components'])} components\n")
    except (PlimsollError, OSError, KeyError, tarfile.TarError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

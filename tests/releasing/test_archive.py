"""The archive of an image contains its version, and its contents are counted."""

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from image.archive import SBOM, verify
from plimsoll.errors import PlimsollError


def a_tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as made:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            made.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def an_archive(folder: Path, version: str = "1.2.3", user: str = "65532:65532", listed: str = "1.2.3") -> Path:
    """An OCI archive with one layer: https://github.com/opencontainers/image-spec/blob/main/image-layout.md"""
    files: dict[str, bytes] = {}

    def blob(content: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        files[f"blobs/sha256/{digest}"] = content
        return {"digest": f"sha256:{digest}", "size": len(content)}

    bill = {"components": [{"name": "plimsoll-gpu", "version": listed}, {"name": "pulumi", "version": "3"}]}
    config = {
        "Labels": {"org.opencontainers.image.version": version},
        "User": user,
        "Entrypoint": ["/opt/plimsoll/bin/dumb-init", "--"],
    }
    layers = [blob(a_tar({f"./{SBOM}": json.dumps(bill).encode()})), blob(a_tar({"else": b""}))]
    manifest = {"config": blob(json.dumps({"config": config}).encode()), "layers": layers}
    files["index.json"] = json.dumps({"manifests": [blob(json.dumps(manifest).encode())]}).encode()
    file = folder / "image.tar"
    file.write_bytes(a_tar(files))
    return file


def test_its_packages_are_those_of_its_sbom(tmp_path: Path) -> None:
    assert [each["name"] for each in verify(an_archive(tmp_path), "1.2.3")["components"]] == ["plimsoll-gpu", "pulumi"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"version": "1.2.2"}, "the version is '1.2.2' and not '1.2.3'"),
        ({"user": "0"}, "the user is '0'"),
        ({"listed": "1.0"}, "its SBOM has plimsoll-gpu '1.0'"),
    ],
)
def test_another_image_is_refused(tmp_path: Path, given: dict[str, str], message: str) -> None:
    with pytest.raises(PlimsollError, match=message):
        verify(an_archive(tmp_path, **given), "1.2.3")

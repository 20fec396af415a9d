"""Kubeconfigs of stacks, as text or as files."""

from pathlib import Path

import pytest
import yaml

from plimsoll.kube import Kubeconfig, SettingsError


def a_kubeconfig(**cluster: str) -> str:
    return yaml.safe_dump(
        {
            "clusters": [
                {"name": "one", "cluster": {"server": "https://one:6443/", **cluster}},
                {"name": "two", "cluster": {"server": "https://two:6443"}},
            ],
            "users": [{"name": "me", "user": {"token": "t"}}],
            "contexts": [
                {"name": "first", "context": {"cluster": "one", "user": "me", "namespace": "team"}},
                {"name": "second", "context": {"cluster": "two", "user": "me"}},
            ],
            "current-context": "first",
        }
    )


def test_text_and_path_mean_the_same(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(a_kubeconfig())
    assert Kubeconfig.read(str(path)) == Kubeconfig.read(a_kubeconfig())


def test_requests_go_to_the_cluster_of_the_context() -> None:
    assert Kubeconfig.read(a_kubeconfig()).connect().server == "https://one:6443"
    assert Kubeconfig.read(a_kubeconfig(), "second").connect().server == "https://two:6443"


def test_files_are_looked_up_beside_the_kubeconfig(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(a_kubeconfig(**{"certificate-authority": "ca.crt"}))
    cluster = Kubeconfig.read(str(path)).content["clusters"][0]["cluster"]
    assert cluster["certificate-authority"] == str(tmp_path / "ca.crt")
    path.write_text(a_kubeconfig(**{"certificate-authority": ""}))
    assert Kubeconfig.read(str(path)).content["clusters"][0]["cluster"]["certificate-authority"] == ""


@pytest.mark.parametrize("text", ["a: b\n", "- a\n", "{", "\n", "{clusters: 1}\n"])
def test_an_invalid_kubeconfig_is_refused(text: str) -> None:
    with pytest.raises(SettingsError):
        Kubeconfig.read(text)


def test_a_missing_context_is_named() -> None:
    with pytest.raises(SettingsError, match="'third'"):
        Kubeconfig.read(a_kubeconfig(), "third")


def test_it_hides_its_credentials() -> None:
    assert "token" not in repr(Kubeconfig.read(a_kubeconfig()))

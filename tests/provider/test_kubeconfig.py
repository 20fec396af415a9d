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
    assert Kubeconfig.read(a_kubeconfig()).server == "https://one:6443"
    assert Kubeconfig.read(a_kubeconfig()).namespace == "team"


def test_context_and_cluster_may_be_chosen() -> None:
    chosen = Kubeconfig.read(a_kubeconfig(), "second")
    assert (chosen.server, chosen.namespace) == ("https://two:6443", "default")
    assert Kubeconfig.read(a_kubeconfig(), None, "two").server == "https://two:6443"


def test_requests_go_to_the_chosen_cluster() -> None:
    assert Kubeconfig.read(a_kubeconfig(), "first", "two").connect().server == "https://two:6443"


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


def test_the_default_kubeconfig_is_that_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(a_kubeconfig())
    monkeypatch.setenv("KUBECONFIG", str(path))
    assert Kubeconfig.ambient().server == "https://one:6443"
    monkeypatch.setenv("KUBECONFIG", f"{path}:{path}")
    with pytest.raises(SettingsError, match="several"):
        Kubeconfig.ambient()
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    assert Kubeconfig.ambient().server == "https://10.0.0.1:443"
    assert Kubeconfig.ambient().in_cluster

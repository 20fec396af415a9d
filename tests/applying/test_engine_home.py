"""What engines find in folders of their own: a home that links to everything in the user's home except logs, absolute
paths, and the provider."""

import errno
from pathlib import Path

import pytest

from plimsoll.apply import ApplySettings, StateFolderFullError, plugin_version
from plimsoll.apply.engine import engine_environment, find_provider, make_engine_home
from tests.applying.states import CLUSTER


@pytest.fixture
def settings(tmp_path: Path) -> ApplySettings:
    (tmp_path / "pulumi/plugins").mkdir(parents=True)
    (tmp_path / "pulumi/logs").mkdir()
    (tmp_path / "pulumi/credentials.json").write_text("{}")
    return ApplySettings(
        environment="test",
        work_folder=tmp_path / "work",
        passphrase_file=tmp_path / "passphrase",
        pulumi_home=tmp_path / "pulumi",
    )


def test_it_links_to_plugins_and_credentials_and_logs_is_not_a_folder(settings: ApplySettings, tmp_path: Path) -> None:
    home = make_engine_home(settings)
    assert (home / "plugins").resolve() == tmp_path / "pulumi/plugins"
    assert (home / "credentials.json").read_text() == "{}"
    assert not (home / "logs").is_dir()
    assert (tmp_path / "pulumi/logs").is_dir()


def test_it_follows_a_changed_home_and_new_files(settings: ApplySettings, tmp_path: Path) -> None:
    make_engine_home(settings)
    other = tmp_path / "other"
    (other / "plugins").mkdir(parents=True)
    home = make_engine_home(settings.model_copy(update={"pulumi_home": other}))
    assert (home / "plugins").resolve() == other / "plugins"
    (other / "credentials.json").write_text("[]")
    assert make_engine_home(settings.model_copy(update={"pulumi_home": other})) == home
    assert (home / "credentials.json").read_text() == "[]"


def test_a_missing_home_is_not_created(settings: ApplySettings, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    home = make_engine_home(settings.model_copy(update={"pulumi_home": nowhere}))
    assert [path.name for path in home.iterdir()] == ["logs"]
    assert not nowhere.exists()


def test_a_work_folder_that_cannot_be_written_is_an_error(settings: ApplySettings, tmp_path: Path) -> None:
    (tmp_path / "work").write_text("a file")
    with pytest.raises(StateFolderFullError, match="engine-home"):
        make_engine_home(settings)


def test_a_folder_in_the_place_of_a_link_is_named_and_kept(settings: ApplySettings, tmp_path: Path) -> None:
    kept = tmp_path / "work/engine-home/plugins/resource"
    kept.mkdir(parents=True)
    with pytest.raises(StateFolderFullError) as caught:
        make_engine_home(settings)
    assert str(tmp_path / "work/engine-home/plugins") in caught.value.message
    assert str(tmp_path / "pulumi/plugins") in caught.value.message
    assert "disk space" not in str(caught.value)
    kept.rmdir()
    kept.parent.rmdir()
    assert (make_engine_home(settings) / "plugins").resolve() == tmp_path / "pulumi/plugins"


@pytest.mark.parametrize(("code", "full"), [(errno.ENOSPC, True), (errno.EACCES, False)])
def test_only_a_full_disk_is_called_full(
    settings: ApplySettings, monkeypatch: pytest.MonkeyPatch, code: int, full: bool
) -> None:
    def failing(*_: object) -> None:
        raise OSError(code, "no")

    monkeypatch.setattr(Path, "symlink_to", failing)
    with pytest.raises(StateFolderFullError) as caught:
        make_engine_home(settings)
    assert ("disk space" in str(caught.value)) == full


def test_paths_are_those_of_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    here = ApplySettings(
        environment="test",
        work_folder=Path("work"),
        passphrase_file=Path("passphrase"),
        kubeconfig=Path("kubeconfig"),
        policy_packs=(Path("pack"),),
    )
    monkeypatch.chdir("/")
    assert here.work_folder == tmp_path / "work"
    assert here.kubeconfig == tmp_path / "kubeconfig"
    assert here.policy_packs == (tmp_path / "pack",)
    assert here.backend_url == f"file://{tmp_path}/work/state"
    assert engine_environment(here, "me")["PULUMI_CONFIG_PASSPHRASE_FILE"] == str(tmp_path / "passphrase")


@pytest.mark.parametrize("files", ["one", "one:two", ""])
def test_the_plugin_reads_the_kubeconfigs_of_the_working_directory(
    settings: ApplySettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", files)
    plugin = tmp_path / f"pulumi/plugins/resource-kubernetes-v{plugin_version()}/pulumi-resource-kubernetes"
    plugin.parent.mkdir()
    plugin.touch()
    provider = find_provider(settings, Path("pulumi"), lambda: CLUSTER)
    named = ":".join(str(tmp_path / each) for each in files.split(":") if each)
    assert provider.environment == ({"KUBECONFIG": named} if files else {})

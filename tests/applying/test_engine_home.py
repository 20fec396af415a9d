"""The home folder of the engines links to everything in the user's home except logs."""

from pathlib import Path

import pytest

from plimsoll.apply import ApplySettings, StateFolderFullError
from plimsoll.apply.engine import make_engine_home


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

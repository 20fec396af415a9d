"""What the engine's processes are told, and what must be there before one is started."""

from plimsoll.apply.engine.home import make_engine_home
from plimsoll.apply.engine.process import HOLDER
from plimsoll.apply.errors import PassphraseError, StateFolderFullError
from plimsoll.apply.settings import ApplySettings


def engine_environment(settings: ApplySettings, identity: str) -> dict[str, str]:
    """Environment variables of the engine's processes. The passphrase is named by its file, never held."""
    return {
        "PULUMI_HOME": str(make_engine_home(settings)),
        "PULUMI_BACKEND_URL": settings.backend_url,
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(settings.passphrase_file.absolute()),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        # Looked for at each start otherwise, for seconds, where the network does not answer.
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        # The history holds a checkpoint of each update already.
        "PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "true",
        # A checkpoint at each step makes an update quadratic in its size. What a killed engine leaves unwritten is
        # found again by its label.
        "PULUMI_EXPERIMENTAL": "true",
        "PULUMI_SKIP_CHECKPOINTS": "true",
        "PULUMI_DIY_BACKEND_GZIP": "false",
        "PULUMI_DIY_BACKEND_ZSTD": "false",
        # An engine lives for one delta: a quarter of its time went into collecting the garbage of a small heap.
        "GOGC": "200",
        HOLDER: identity,
    }


def check_passphrase(settings: ApplySettings) -> None:
    """Raises PassphraseError where the file cannot be read; its content is looked at by the engine alone."""
    if settings.secrets_provider != "passphrase":
        return
    try:
        with settings.passphrase_file.open("rb"):
            pass
    except OSError as error:
        raise PassphraseError(
            f"passphrase file {settings.passphrase_file}: {error.strerror}",
            "name a file that holds the passphrase of the stacks with --passphrase-file",
        ) from None


def make_work_folder(settings: ApplySettings) -> None:
    """Raises StateFolderFullError where it cannot be made."""
    try:
        settings.work_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StateFolderFullError(f"{settings.work_folder}: {error.strerror}", "name another work folder") from None

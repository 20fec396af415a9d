"""The settings of `plimsoll policy check`, from a file of YAML or JSON."""

from pathlib import Path

from pydantic import ValidationError

from plimsoll.errors import PlimsollError
from plimsoll.model.api import PolicyConfig
from plimsoll.model.meta import describe_errors
from plimsoll.observe.files.documents import documents_in
from plimsoll.policy import settled


def read_policy_config(file: Path | None) -> PolicyConfig:
    """The settings in a file; the defaults without a file. Raises PlimsollError, which names the file and the field or
    rule."""
    if file is None:
        return PolicyConfig()
    documents = list(documents_in(str(file)))
    if len(documents) > 1:
        raise PlimsollError(f"{documents[1].place}: a second document", "the settings must be one document")
    try:
        config = PolicyConfig.model_validate(documents[0].value if documents else {})
    except ValidationError as error:
        raise PlimsollError(f"{file}: {describe_errors(error, PolicyConfig)}") from None
    try:
        settled(config)
    except PlimsollError as error:
        raise PlimsollError(f"{file}: {error.message}", error.hint) from None
    return config

"""Common parts of requests to AWS: credentials, region, timeouts and error messages."""

import re
from typing import Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError

from plimsoll.errors import PlimsollError

CONFIG: Final = Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 4})
_REGION: Final = re.compile(r"[a-z]{2,}(-[a-z]+)+-[0-9]+")


class AwsError(PlimsollError):
    """AWS did not answer, or the request cannot be made."""


def session() -> boto3.Session:
    """A session by the AWS configuration of the process's environment. Raises AwsError."""
    try:
        return boto3.Session()
    except BotoCoreError as error:
        raise AwsError(f"the AWS configuration cannot be used: {error}", "correct AWS_PROFILE, or unset it") from None


def region_of(aws: boto3.Session, given: str | None) -> str:
    """The given region, else that of the AWS configuration. Raises AwsError."""
    name = given or aws.region_name
    if not name or not _REGION.fullmatch(name):
        raise AwsError(
            f"{name!r} is not an AWS region" if name else "no AWS region is set",
            "set one such as eu-west-1 with the option or AWS_REGION",
        )
    return name


def error_text(error: BotoCoreError | ClientError) -> str:
    """The error code and message of the service, without the request."""
    if isinstance(error, ClientError):
        details = error.response.get("Error", {})
        return f"{details.get('Code', 'error')}: {details.get('Message', '')}".strip().rstrip(":")
    return str(error)


def explained(error: BotoCoreError | ClientError, permission: str, otherwise: str) -> str:
    """What to change; `otherwise` says what works without AWS."""
    if isinstance(error, NoCredentialsError | PartialCredentialsError):
        return "provide AWS credentials by environment variables, a profile (AWS_PROFILE) or a role"
    if isinstance(error, ClientError):
        return f"the credentials need the permission {permission}, and the region must be enabled"
    return f"check the network and the region's name; {otherwise}"

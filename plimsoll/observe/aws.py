"""What all questions to AWS have in common: credentials, region, patience, and words for what went wrong."""

import re
from typing import Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError

from plimsoll.errors import PlimsollError

CONFIG: Final = Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 4})
_REGION: Final = re.compile(r"[a-z]{2,}(-[a-z]+)+-[0-9]+")


class AwsError(PlimsollError):
    """AWS did not answer, or the question cannot be put."""


def session() -> boto3.Session:
    """Of the AWS configuration of the environment. Raises AwsError."""
    try:
        return boto3.Session()
    except BotoCoreError as error:
        raise AwsError(f"the AWS configuration cannot be used: {error}", "correct AWS_PROFILE, or unset it") from None


def region_of(aws: boto3.Session, given: str | None) -> str:
    """The given region, else that of the configuration. Raises AwsError."""
    name = given or aws.region_name
    if not name or not _REGION.fullmatch(name):
        raise AwsError(
            f"{name!r} is not an AWS region" if name else "no AWS region is set",
            "set one such as eu-west-1 with the option or AWS_REGION",
        )
    return name


def said(error: BotoCoreError | ClientError) -> str:
    """The service's code and words, without the request."""
    if isinstance(error, ClientError):
        told = error.response.get("Error", {})
        return f"{told.get('Code', 'error')}: {told.get('Message', '')}".strip().rstrip(":")
    return str(error)


def explained(error: BotoCoreError | ClientError, permission: str, otherwise: str) -> str:
    """What to change; `otherwise` says what works without network."""
    if isinstance(error, NoCredentialsError | PartialCredentialsError):
        return "provide AWS credentials by environment variables, a profile (AWS_PROFILE) or a role"
    if isinstance(error, ClientError):
        return f"the credentials need the permission {permission}, and the region must be enabled"
    return f"check the network and the region's name; {otherwise}"

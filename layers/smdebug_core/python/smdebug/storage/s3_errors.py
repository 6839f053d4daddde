"""Translate S3's errors into those of storages."""

from __future__ import annotations

from typing import Any

from smdebug.exceptions import AccessDenied, ObjectMissing, StorageError, StorageUnavailable

_RIGHT_TO = {
    "read": "s3:GetObject on the object (without s3:ListBucket, S3 also reports a missing object like this)",
    "list": "s3:ListBucket on the bucket",
    "write": "s3:PutObject on the object (and kms:GenerateDataKey if the bucket encrypts with KMS)",
    "delete": "s3:DeleteObject on the object",
}
_MISSING = frozenset(("NoSuchKey", "404", "NotFound"))
_DENIED = frozenset(("AccessDenied", "403", "Forbidden", "AllAccessDisabled", "AccountProblem"))
_BAD_CREDENTIALS = frozenset(
    (
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidToken",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
        "TokenRefreshRequired",
    )
)
_ELSEWHERE = frozenset(
    (
        "301",
        "PermanentRedirect",
        "AuthorizationHeaderMalformed",
        "IllegalLocationConstraintException",
    )
)
_LATER = frozenset(
    (
        "500",
        "502",
        "503",
        "504",
        "InternalError",
        "OperationAborted",
        "RequestTimeout",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "RequestLimitExceeded",
    )
)


class RangeEmpty(StorageError):
    """The object ends before the requested range."""


class translated:  # noqa: N801 - a context manager, which is named like a function
    """Raise the errors of botocore as a `StorageError` about `place`."""

    def __init__(self, place: str, doing: str):
        self._place = place
        self._doing = doing

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is not None and (typed := storage_error(error, self._place, self._doing)) is not None:
            raise typed from error


def storage_error(error: BaseException, place: str, doing: str) -> StorageError | None:
    """Return the `StorageError` for an error of botocore or the network; None for any other error."""
    from botocore import exceptions as aws

    if isinstance(error, aws.ClientError):
        return _refusal(error.response, place, doing)
    if isinstance(error, aws.NoCredentialsError | aws.PartialCredentialsError | aws.CredentialRetrievalError):
        return AccessDenied(
            place, f"no AWS credentials were found ({error}); run `aws configure` or set a role"
        )
    if isinstance(
        error,
        aws.HTTPClientError | aws.ConnectionError | aws.IncompleteReadError | aws.FlexibleChecksumError,
    ):
        return StorageUnavailable(place, f"S3 cannot be reached, or the connection broke: {error}")
    if isinstance(error, aws.BotoCoreError):
        return StorageError(place, f"The request to S3 is invalid: {error}")
    if isinstance(error, OSError):
        return StorageUnavailable(place, f"the connection to S3 broke: {error}")
    return None


def _refusal(response: Any, place: str, doing: str) -> StorageError:
    details = response.get("Error", {})
    code = str(details.get("Code", ""))
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    text = f"{code}: {details.get('Message', '')}".rstrip(": ")
    if code in _MISSING:
        return ObjectMissing(place)
    if code in ("InvalidRange", "416"):
        return RangeEmpty(place, "the object ends before this range")
    if code == "NoSuchBucket":
        return StorageError(
            place, "the bucket does not exist (it is never created); check its name and region"
        )
    if code in _DENIED:
        return AccessDenied(place, f"the credentials lack {_RIGHT_TO[doing]}. S3 says {text}")
    if code in _BAD_CREDENTIALS:
        return AccessDenied(place, f"the credentials are not accepted; renew them. S3 says {text}")
    if code in _ELSEWHERE or status == 301:
        region = response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("x-amz-bucket-region")
        where = f"in {region}" if region else "in another region"
        return StorageError(place, f"the bucket is {where}; set AWS_REGION accordingly. S3 says {text}")
    if code in _LATER or status >= 500 or status == 429:
        return StorageUnavailable(place, f"S3 is busy; try again later. S3 says {text}")
    return StorageError(place, f"S3 refuses the request: {text}")

"""What the policy of a key must say so that AWS's services can use it for a debugger.

`python -m infra.landing_zone.key_policy ACCOUNT REGION` prints it for an existing key, which has to have it
before the deployment: a log group is not created with a key that CloudWatch may not use. Settings are those
of `cdk.json` and of `-c name=value`. The functions themselves need no statement: their roles allow it.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from typing import Any

from infra.packaging.assets import ROOT
from infra.settings import Settings, SettingsError


@dataclass(frozen=True)
class Place:
    """Where a stack is deployed to."""

    partition: str
    region: str
    account: str
    suffix: str

    @classmethod
    def of(cls, account: str, region: str) -> Place:
        """Return the place of a region, whose name says in which partition it is."""
        for beginning, partition, suffix in (
            ("cn-", "aws-cn", "amazonaws.com.cn"),
            ("us-gov-", "aws-us-gov", "amazonaws.com"),
            ("eusc-", "aws-eusc", "amazonaws.eu"),
        ):
            if region.startswith(beginning):
                return cls(partition, region, account, suffix)
        return cls("aws", region, account, "amazonaws.com")


def statements(place: Place, *, stack: str, prefix: str, own_bucket: bool) -> list[dict[str, Any]]:
    """Return the statements that let in the services of a stack.

    Queues and topics have policies of their own, which name who may send to them. So the statements of
    services that only send there have no condition, which these services may not support.
    """
    here = f"{place.region}:{place.account}"
    groups = f"arn:{place.partition}:logs:{here}:log-group"
    buckets = f"arn:{place.partition}:s3:::{prefix}smdebug-*-{place.account}-{place.region}"
    logs = ["kms:Decrypt*", "kms:Describe*", "kms:Encrypt*", "kms:GenerateDataKey*", "kms:ReEncrypt*"]
    found = [
        _let(
            "LogsOfThisStack",
            f"logs.{place.region}.{place.suffix}",
            logs,
            {
                "ArnLike": {
                    "kms:EncryptionContext:aws:logs:arn": [
                        f"{groups}:{stack}-*",
                        f"{groups}:/aws/vendedlogs/states/{prefix}smdebug-*",
                    ]
                }
            },
        ),
        _let("LogsOfStateMachines", "delivery.logs.amazonaws.com", ["kms:Decrypt"]),
        _let(
            "EventsAndUndeliveredOnes",
            "events.amazonaws.com",
            ["kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKey"],
        ),
        _let("Alarms", "cloudwatch.amazonaws.com", ["kms:Decrypt", "kms:GenerateDataKey"]),
    ]
    if own_bucket:
        only = {
            "ArnLike": {"aws:SourceArn": buckets},
            "StringEquals": {"aws:SourceAccount": place.account},
        }
        found.append(_let("Notifications", "s3.amazonaws.com", ["kms:Decrypt", "kms:GenerateDataKey"], only))
    return found


def of_settings(place: Place, settings: Settings, stack: str) -> list[dict[str, Any]]:
    """Return the statements for a deployment with these settings."""
    return statements(place, stack=stack, prefix=settings.name_prefix, own_bucket=settings.bucket is None)


def _let(
    sid: str, service: str, actions: list[str], condition: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "Sid": sid,
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": actions,
        "Resource": "*",
        **({"Condition": condition} if condition else {}),
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m infra.landing_zone.key_policy",
        description="Print the statements that the policy of an existing key needs.",
    )
    parser.add_argument("account", help="the number of the account, of 12 digits")
    parser.add_argument("region", help="such as eu-central-1")
    parser.add_argument("-c", dest="given", action="append", default=[], metavar="name=value")
    options = parser.parse_args(arguments)
    if not (options.account.isdecimal() and len(options.account) == 12):
        parser.error(f"{options.account!r} is not the number of an account: it has 12 digits")
    context = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    context |= {name: value for name, _, value in (pair.partition("=") for pair in options.given)}
    try:
        settings = Settings.from_context(context)
    except SettingsError as error:
        sys.exit(str(error))
    place = Place.of(options.account, options.region)
    print(json.dumps(of_settings(place, settings, settings.stack), indent=2))


if __name__ == "__main__":
    main()

"""`make smoke-aws`: deploy into a real account, three runs, destroy, take over what is kept, destroy all.

It costs a few cents and takes about half an hour. Credentials are those of the AWS tools. The stack has a
name of its own, so that a debugger in the same account is not touched. Whatever fails, all is deleted at the
end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import boto3

from infra.account.take_over import take_over
from infra.packaging.assets import ROOT
from smdebug.service.checks.live_checks import check_deployment
from smdebug.service.client import connect
from tests.smoke.runs import SmokeFailed, three_runs

_SWEPT_WITHIN = 1500.0
_EVENTS_WITHIN = 420.0  # seconds: S3 takes about five minutes until a bucket sends events
_BOOTSTRAPPED = "/cdk-bootstrap/hnb659fds/version"


class Smoke:
    """One stack, deployed and destroyed."""

    def __init__(self, cdk: str, name: str, region: str):
        self.region = region
        self._cdk = ["npx", "--yes", f"aws-cdk@{cdk}"]
        self.name = name
        self.buckets: set[str] = set()
        self.tables: set[str] = set()

    def deploy(self, **settings: str) -> dict[str, str]:
        """Deploy; return the outputs."""
        with tempfile.TemporaryDirectory() as folder:
            outputs = Path(folder) / "outputs.json"
            self._run("deploy", settings, "--require-approval", "never", "--outputs-file", str(outputs))
            found: dict[str, str] = json.loads(outputs.read_text())[self.name]
        self.buckets.add(found["Bucket"])
        self.tables.add(found["StepIndex"])
        return found

    def destroy(self, **settings: str) -> None:
        self._run("destroy", settings, "--force")

    def _run(self, command: str, settings: dict[str, str], *options: str) -> None:
        given = {"stack": self.name, **settings}
        context = [part for name, value in given.items() for part in ("-c", f"{name}={value}")]
        print(f"\n== cdk {command} {' '.join(context)}", flush=True)
        whole = [*self._cdk, command, self.name, *context, *options]
        # boto3 and the CDK look for the region in different places.
        region = {"AWS_REGION": self.region, "AWS_DEFAULT_REGION": self.region}
        subprocess.run(whole, cwd=ROOT, check=True, env={**os.environ, **region})


def not_ready(cdk: str, stack: str) -> str:
    """Return why nothing can be deployed here, and what to do; empty if it can be."""
    parameters, stacks = boto3.client("ssm"), boto3.client("cloudformation")
    try:
        parameters.get_parameter(Name=_BOOTSTRAPPED)
    except parameters.exceptions.ParameterNotFound:
        return (
            "The account and region are not prepared for the CDK: run "
            f"`npx --yes aws-cdk@{cdk} bootstrap` once."
        )
    with suppress(stacks.exceptions.ClientError):  # there is none of that name
        stacks.describe_stacks(StackName=stack)
        return f"The stack {stack} exists: destroy it, or name another one with --stack."
    return ""


def wait_until_well(stack: str) -> None:
    """Wait until every check of the live stack is well: the sweeper begins within five minutes."""
    until = time.monotonic() + _SWEPT_WITHIN
    while True:
        wrong = [check for check in check_deployment(stack) if check.state == "wrong"]
        if not wrong:
            return
        if time.monotonic() > until:
            raise SmokeFailed("; ".join(f"{check.what}: {check.found}" for check in wrong))
        time.sleep(30)


def run(smoke: Smoke) -> None:
    s3 = boto3.client("s3")
    outputs = smoke.deploy()
    three_runs(connect(smoke.name), outputs["Bucket"], "first", s3)
    wait_until_well(smoke.name)
    smoke.destroy()
    s3.head_bucket(Bucket=outputs["Bucket"])  # it is kept, and so is the table
    boto3.client("dynamodb").describe_table(TableName=outputs["StepIndex"])
    take_over(outputs["Bucket"], s3, boto3.client("sqs"))
    taken_over = time.monotonic()
    smoke.deploy(bucket=outputs["Bucket"], removal_policy="destroy")
    # A run of which no file was ever notified is not known, so nothing would look for it.
    time.sleep(max(0.0, taken_over + _EVENTS_WITHIN - time.monotonic()))
    three_runs(connect(smoke.name), outputs["Bucket"], "second", s3)
    smoke.destroy(bucket=outputs["Bucket"], removal_policy="destroy")


def delete_kept(smoke: Smoke) -> None:
    """Delete the buckets, with everything in them, and the tables that the stacks have left."""
    tables = boto3.client("dynamodb")
    for name in smoke.buckets:
        bucket: Any = boto3.resource("s3").Bucket(name)
        if bucket.creation_date is not None:
            bucket.objects.all().delete()
            bucket.delete()
    for name in smoke.tables:
        with suppress(tables.exceptions.ResourceNotFoundException):
            tables.delete_table(TableName=name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cdk", required=True, help="the version of the CDK CLI")
    parser.add_argument("--stack", default="smdebug-smoke", help="must not exist yet")
    parser.add_argument("--yes", action="store_true", help="deploy into the account shown without asking")
    parser.add_argument("--keep", action="store_true", help="do not destroy the stack after a failure")
    arguments = parser.parse_args()
    if shutil.which("npx") is None:
        sys.exit("The CDK CLI needs npx, which comes with Node.js 22 or newer.")
    region = os.environ.get("AWS_REGION") or boto3.session.Session().region_name
    if not region:
        sys.exit("No region is set: export AWS_REGION, such as us-east-1.")
    os.environ["AWS_REGION"] = region  # for everything that follows, the CDK too
    boto3.setup_default_session(region_name=region)
    if problem := not_ready(arguments.cdk, arguments.stack):
        sys.exit(problem)
    identity = boto3.client("sts").get_caller_identity()
    print(f"Account {identity['Account']} in {region}, as {identity['Arn']}: stack {arguments.stack}")
    if not arguments.yes and input("Deploy and destroy there? [y/N] ").strip().lower() != "y":
        sys.exit("Nothing was done.")
    smoke = Smoke(arguments.cdk, arguments.stack, region)
    try:
        run(smoke)
    except BaseException:
        if arguments.keep:
            kept = ", ".join(sorted(smoke.buckets | smoke.tables))
            print(f"The stack {smoke.name} is kept, and {kept or 'nothing else'}.")
        else:
            try:
                smoke.destroy()
            finally:
                delete_kept(smoke)
        raise
    delete_kept(smoke)
    print("\nEverything held, and nothing is left.")


if __name__ == "__main__":
    main()

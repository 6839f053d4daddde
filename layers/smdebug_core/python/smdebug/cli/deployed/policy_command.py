"""`smdebug policy`: print the smallest policies of a training's role."""

from __future__ import annotations

import click

from smdebug.cli.answers.output import output_options, print_json, print_note
from smdebug.service.training_policy import PARTITIONS, TAKEN_BY, training_policy, trust_policy


@click.command("policy")
@click.argument("prefix")
@click.option(
    "--for",
    "where",
    type=click.Choice(list(TAKEN_BY)),
    required=True,
    help="Where the training runs: as a job, in a pod (Pod Identity), on an instance, as a task.",
)
@click.option("--trust", is_flag=True, help="Print who may take the role, instead of what it may do.")
@click.option("--key", metavar="ARN", help="Add the KMS key that the bucket is encrypted with.")
@click.option("--overwrite", is_flag=True, help="Let it remove and resume finished runs (`if_finished`).")
@click.option("--account", metavar="NUMBER", help="Let the service take the role for this account alone.")
@click.option(
    "--partition",
    type=click.Choice(PARTITIONS),
    default=PARTITIONS[0],
    show_default=True,
    help="Name the partition of the bucket.",
)
@output_options
def command(
    prefix: str,
    where: str,
    trust: bool,
    key: str | None,
    overwrite: bool,
    account: str | None,
    partition: str,
    as_json: bool,
) -> None:
    """Print the smallest IAM policy for the role of trainings that save below PREFIX.

    PREFIX is s3://bucket/folder/. The policy is what a hook needs and no more; what else your training
    reads and writes comes on top. Nothing is changed in the account.

    \b
    Examples:
      smdebug policy s3://runs/vision/ --for sagemaker > policy.json
      smdebug policy s3://runs/vision/ --for sagemaker --trust
      smdebug policy s3://runs/vision/ --for eks --overwrite

    Exits with 0, and with 2 if PREFIX is no folder of a bucket.
    """
    may = training_policy(prefix, partition=partition, key=key, overwrite=overwrite)
    taken = trust_policy(where, account=account)
    if as_json:
        print_json({"policy": may, "trust": taken})
        return
    print_json(taken if trust else may)
    if not trust:
        print_note("The policy shows the names of all objects in the bucket to the role, and no content.")

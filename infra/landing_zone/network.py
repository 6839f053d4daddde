"""Functions in a VPC: those of the debugger, and those with custom rules, which may have no way out."""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.acknowledgments import acknowledge_wildcards
from infra.python_function import PythonFunction
from infra.settings import Settings

ATTACHING = [
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
]
"""What Lambda does with a function's role to attach the function to a subnet."""


def put_into_vpc(construct: Construct, settings: Settings) -> None:
    """Attach every function below the construct to its subnets, if the settings name some."""
    for node in construct.node.find_all():
        if isinstance(node, PythonFunction):
            subnets = settings.vpc_subnets if node.is_trusted else settings.subnets_of_custom_rules
            if subnets:
                _attach(node, subnets, settings.vpc_security_groups)


def _attach(function: PythonFunction, subnets: tuple[str, ...], groups: tuple[str, ...]) -> None:
    resource = function.function.node.default_child
    assert isinstance(resource, lambda_.CfnFunction)
    resource.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
        subnet_ids=list(subnets), security_group_ids=list(groups)
    )
    acknowledge_wildcards(
        function.role, ["*"], "Lambda attaches functions to network interfaces, which have no names before."
    )
    function.role.add_to_policy(iam.PolicyStatement(actions=ATTACHING, resources=["*"]))
    function.role.add_to_policy(
        iam.PolicyStatement(
            # Lambda itself needs it; the code that runs in the function does not.
            # https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html
            effect=iam.Effect.DENY,
            actions=ATTACHING,
            resources=["*"],
            conditions={"Null": {"lambda:SourceFunctionArn": "false"}},
        )
    )

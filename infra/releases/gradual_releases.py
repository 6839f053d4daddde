"""A new version of a function gets a tenth of the work for five minutes, and is taken back if it fails.

CodeDeploy moves the alias `live` from the earlier version to the new one. If the alarm of the new version is
raised meanwhile, the alias is moved back and the deployment rolled back.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_codedeploy as codedeploy
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.python_function import PythonFunction
from infra.roles import allow, role_of

LIVE = "live"
HOW = "CodeDeployDefault.LambdaCanary10Percent5Minutes"
FEWEST = 5  # calls in a minute from which the share of failed ones says something
MOST_FAILED = 0.5  # of the calls; some fail in every release, as another execution holds the rules


class GradualReleases(Construct):
    """The application of CodeDeploy, with a group for each function."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        self._application = codedeploy.CfnApplication(self, "Application", compute_platform="Lambda")

    def release(self, function: PythonFunction) -> None:
        """Release new versions of the function gradually; whatever calls it calls the alias from here on."""
        raw = function.function
        version = raw.current_version
        alarm = _alarm(function, version)
        # A role for each: Ingest needs the workflow, which needs the alias of Evaluate.
        role = role_of(
            self,
            "codedeploy",
            f"Moves the work of {function.node.id} from one version to the next",
            id=f"{function.node.id}Role",
        )
        # By name: the role must exist before the alias does.
        allow(
            role,
            "lambda:GetAlias",
            "lambda:UpdateAlias",
            on=[raw.function_arn, f"{raw.function_arn}:{LIVE}"],
        )
        allow(role, "cloudwatch:DescribeAlarms", on=[alarm.alarm_arn])
        group = codedeploy.CfnDeploymentGroup(
            self,
            function.node.id,
            application_name=self._application.ref,
            service_role_arn=role.role_arn,
            deployment_config_name=HOW,
            deployment_style=codedeploy.CfnDeploymentGroup.DeploymentStyleProperty(
                deployment_type="BLUE_GREEN", deployment_option="WITH_TRAFFIC_CONTROL"
            ),
            alarm_configuration=codedeploy.CfnDeploymentGroup.AlarmConfigurationProperty(
                enabled=True,
                alarms=[codedeploy.CfnDeploymentGroup.AlarmProperty(name=alarm.alarm_name)],
            ),
            auto_rollback_configuration=codedeploy.CfnDeploymentGroup.AutoRollbackConfigurationProperty(
                enabled=True, events=["DEPLOYMENT_FAILURE", "DEPLOYMENT_STOP_ON_ALARM"]
            ),
        )
        group.node.add_dependency(role)
        alias = lambda_.Alias(function, "Live", alias_name=LIVE, version=version)
        resource = alias.node.default_child
        assert isinstance(resource, lambda_.CfnAlias)
        resource.cfn_options.update_policy = cdk.CfnUpdatePolicy(
            code_deploy_lambda_alias_update=cdk.CfnCodeDeployLambdaAliasUpdate(
                application_name=self._application.ref, deployment_group_name=group.ref
            )
        )
        function.is_called_as(alias)


def _alarm(function: PythonFunction, version: lambda_.IVersion) -> cloudwatch.Alarm:
    """Return the alarm of this version alone: in a sum, a tenth that fails would not be noticed."""
    calls, errors = (
        cloudwatch.Metric(
            namespace="AWS/Lambda",
            metric_name=name,
            dimensions_map={
                "FunctionName": function.function.function_name,
                "Resource": f"{function.function.function_name}:{LIVE}",
                "ExecutedVersion": version.version,
            },
            statistic="Sum",
            period=cdk.Duration.minutes(1),
        )
        for name in ("Invocations", "Errors")
    )
    return cloudwatch.Alarm(
        function,
        "NewVersionFails",
        alarm_description=f"Calls of a new version of {function.node.id} fail, so it is taken back",
        metric=cloudwatch.MathExpression(
            expression=f"IF(calls >= {FEWEST}, errors / calls, 0)",
            using_metrics={"calls": calls, "errors": errors},
            label="failed calls",
            period=cdk.Duration.minutes(1),
        ),
        threshold=MOST_FAILED,
        comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        evaluation_periods=3,
        datapoints_to_alarm=2,
        treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
    )

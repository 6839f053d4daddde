"""Jobs of AWS Batch may be stopped only where the deployer has named their queues."""

from infra import names
from tests.infra.conftest import Stack, environment, listed


def actions_on_batch(stack: Stack) -> dict[str, set[str]]:
    """The actions of each role, with what they are allowed on."""
    return {
        f"{role} {action}": {stack.text(resource) for resource in listed(statement["Resource"])}
        for role in stack.of("AWS::IAM::Role")
        for statement in stack.statements_of(role)
        for action in listed(statement["Action"])
        if action.startswith("batch:")
    }


def test_without_queues_no_function_may_do_anything_in_batch(default_stack: Stack):
    assert actions_on_batch(default_stack) == {}
    assert environment(default_stack.function("Act"))[names.BATCH_QUEUES] == ""


def test_with_queues_the_function_of_actions_alone_may_terminate_jobs_of_this_account(full_stack: Stack):
    (act,) = full_stack.function("Act")["Role"]["Fn::GetAtt"][:1]
    assert actions_on_batch(full_stack) == {
        f"{act} batch:TerminateJob": {"arn:<AWS::Partition>:batch:<AWS::Region>:<AWS::AccountId>:job/*"},
        f"{act} batch:DescribeJobs": {"*"},
        f"{act} batch:ListJobs": {"*"},
    }
    assert environment(full_stack.function("Act"))[names.BATCH_QUEUES] == "training,night"

"""The old address of `local_aws.pytest_plugin`, for test suites that name it."""

from local_aws.pytest_plugin import local_aws, local_debugger

__all__ = ["local_aws", "local_debugger"]

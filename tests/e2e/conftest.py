"""One local stack per session; each test has its own prefix in the bucket."""

from local_aws.pytest_plugin import local_aws, local_debugger

__all__ = ["local_aws", "local_debugger"]

"""One local stack for the session; each test has a prefix of its own in its bucket."""

from local_aws.pytest_plugin import local_aws, local_debugger

__all__ = ["local_aws", "local_debugger"]

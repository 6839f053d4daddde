"""The old address of `local_aws`, for tests and scripts written for it."""

from local_aws import LocalAws, LocalDebugger, LocalStackError, serve

__all__ = ["LocalAws", "LocalDebugger", "LocalStackError", "serve"]

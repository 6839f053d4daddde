"""AWS on this machine: the synthesized template deployed into moto, with the real handlers."""

from local_aws.aws import LocalAws
from local_aws.debugger import LocalDebugger
from local_aws.errors import LocalStackError
from local_aws.serve import serve

__all__ = ["LocalAws", "LocalDebugger", "LocalStackError", "serve"]

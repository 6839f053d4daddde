"""The same stack on a laptop: the synthesized template in an embedded moto, with the real handlers."""

from infra.local.aws import LocalAws
from infra.local.debugger import LocalDebugger
from infra.local.errors import LocalStackError
from infra.local.serve import serve

__all__ = ["LocalAws", "LocalDebugger", "LocalStackError", "serve"]

"""The same stack on a laptop: the synthesized template in an embedded moto, with the real handlers."""

from infra.local.aws import LocalAws
from infra.local.errors import LocalStackError

__all__ = ["LocalAws", "LocalStackError"]

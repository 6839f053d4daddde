"""For code written against smdebug: reduction configs live in `smdebug.config.reduction_config`."""

from smdebug.config.reduction_config import ALLOWED_NORMS, ALLOWED_REDUCTIONS, ReductionConfig

__all__ = [
    "ALLOWED_NORMS",
    "ALLOWED_REDUCTIONS",
    "ReductionConfig",
]

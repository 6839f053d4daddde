"""The limits of AWS that moto does not have, so that nothing passes here that AWS would refuse."""

from local_aws.limits.numbers import BeyondLimit, Limits

__all__ = ["BeyondLimit", "Limits"]

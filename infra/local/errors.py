"""What can go wrong with the stack on a laptop. Every text says what to do."""

from __future__ import annotations


class LocalStackError(RuntimeError):
    """The stack on this machine could not be started, or cannot do what was asked of it."""


class Unsupported(LocalStackError):
    """The template, or a call, uses something unknown here: nothing is left out silently."""


class PortTaken(LocalStackError):
    """Somebody listens on that port already: choose another, or none for a free one."""


class NotSynthesized(LocalStackError):
    """The template could not be made: the text is what the CDK said."""


class DidNotStart(LocalStackError):
    """The process that plays AWS ended before it was ready: the text is the last thing it said."""


class WaitedTooLong(LocalStackError):
    """What was waited for did not happen in time: the text says what is known instead."""

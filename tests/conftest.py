"""Hypothesis has no deadlines here: tests must not fail because the machine is busy."""

from contextlib import suppress

with suppress(ImportError):  # the framework environments do not have it
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("untimed")

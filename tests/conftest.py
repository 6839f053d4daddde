"""A test says what holds, not how fast: an example of Hypothesis may take its time on a busy machine."""

from contextlib import suppress

with suppress(ImportError):  # the environments of the frameworks go without
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("untimed")

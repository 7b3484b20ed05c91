"""Profiles for the hypothesis tests: quick in the normal run, `--hypothesis-profile=fuzz` for a long one."""

from hypothesis import HealthCheck, settings

_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

settings.register_profile("byline", max_examples=25, deadline=None, suppress_health_check=_SLOW)
settings.register_profile("fuzz", max_examples=3_000, deadline=None, suppress_health_check=_SLOW)
if settings.get_current_profile_name() == "default":  # none was asked for on the command line
    settings.load_profile("byline")

"""Infra and the functions do not import each other: the words that both write are compared here."""

import pytest

import functions.custom_rules.budget
import functions.custom_rules.sources
import functions.decisions.detail_types as published
import functions.decisions.publishing
import functions.decisions.tenants
import functions.followup.run_report
import functions.telemetry
import infra.events.findings_bus as bus
import infra.names
import infra.settings
import infra.storage.run_bucket
import smdebug.files.names
import smdebug.service.checks.webhook_checks
import smdebug.service.webhook_secrets


@pytest.mark.parametrize(
    ("deployed", "used"),
    [
        (infra.storage.run_bucket.CONTROL, smdebug.files.names.STOP_KEY),
        (infra.storage.run_bucket.ZOOM, smdebug.files.names.ZOOM_KEY),
        (infra.storage.run_bucket.REPORT, functions.followup.run_report.KEY),
        (infra.storage.run_bucket.RULE_SOURCES, functions.custom_rules.sources.OWN_SOURCES),
        (infra.storage.run_bucket.RULE_SOURCES, functions.decisions.tenants.SOURCES),
        (infra.settings.LONGEST_JOB, functions.custom_rules.budget.LONGEST_JOB),
        (infra.settings.IN_SSM, smdebug.service.webhook_secrets.IN_SSM),
        (infra.names.METRICS, functions.telemetry.NAMESPACE),
        (infra.names.WEBHOOK_SECRET, smdebug.service.checks.webhook_checks.VARIABLE),
        (bus.SOURCE, functions.decisions.publishing.SOURCE),
        (bus.FOUND, published.CONDITION_MET),
        (bus.RESOLVED, published.ISSUE_RESOLVED),
        (bus.STATUS, published.STATUS_CHANGE),
        (bus.RUN, published.RUN_STATE_CHANGE),
        (bus.ACTION, published.ACTION_OUTCOME),
    ],
)
def test_what_is_deployed_is_what_the_functions_use(deployed, used):
    assert deployed == used


def test_every_kind_of_event_is_on_the_bus_but_the_one_in_sagemakers_form():
    assert {*bus.ALL_EVENTS, published.OLD_STATE_CHANGE} == set(published.DETAIL_TYPES)

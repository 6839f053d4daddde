"""What each function may do, and the environment variables that name its resources."""

from __future__ import annotations

from infra.evaluation_workflow import EvaluationWorkflow
from infra.foundation import Foundation
from infra.functions import Functions
from infra.names import READER, READERS_AT_ONCE
from infra.settings import Settings
from infra.training_jobs import let_stop_batch_jobs, let_stop_jobs


def grant(
    functions: Functions,
    foundation: Foundation,
    workflow: EvaluationWorkflow,
    settings: Settings,
) -> None:
    """Give every function its permissions, and the environment variables that go with them."""
    _grant_arrivals(functions, foundation, settings)
    _grant_evaluation(functions, foundation, settings)
    _grant_upkeep(functions, foundation)
    _grant_follow_up(functions, foundation, settings)
    for function in (functions.ingest, functions.sweep, functions.watch):
        workflow.let_start(function)
    for function in (
        functions.evaluate,
        functions.claim,
        functions.commit,
        functions.finish_run,
        functions.act,
    ):
        foundation.arrivals.let_send_reminders(function)


def _grant_arrivals(functions: Functions, foundation: Foundation, settings: Settings) -> None:
    ingest = functions.ingest
    foundation.arrivals.feed(
        ingest, batch_window=settings.batch_window_seconds, at_once=settings.ingest_at_once
    )
    foundation.table.let_record_arrivals(ingest)
    foundation.bucket.let_read(ingest)
    foundation.schedules.let_schedule_checks(ingest)
    functions.custom.let_know_rules(ingest)


def _grant_evaluation(functions: Functions, foundation: Foundation, settings: Settings) -> None:
    table, bucket = foundation.table, foundation.bucket

    table.let_evaluate(functions.evaluate)
    bucket.let_read_with_others(functions.evaluate)
    bucket.let_keep_state(functions.evaluate)
    bucket.let_write_evidence(functions.evaluate)

    if functions.read_shard:
        bucket.let_read_steps(functions.read_shard)
        functions.evaluate.may("lambda:InvokeFunction", on=[functions.read_shard.arn])
        functions.evaluate.knows(READER, functions.read_shard.arn)
        functions.evaluate.knows(READERS_AT_ONCE, str(settings.readers_at_once))

    table.let_claim(functions.claim)
    bucket.let_read(functions.claim)
    functions.custom.let_claim(functions.claim, bucket=bucket, settings=settings)

    table.let_claim(functions.commit)
    bucket.let_write_evidence(functions.commit)

    table.let_mark_published(functions.mark_published)


def _grant_upkeep(functions: Functions, foundation: Foundation) -> None:
    table, bucket, schedules = foundation.table, foundation.bucket, foundation.schedules

    table.let_track_runs(functions.finish_run)

    table.let_record_arrivals(functions.sweep)
    bucket.let_read(functions.sweep)
    schedules.let_schedule_checks(functions.sweep)
    functions.custom.let_know_rules(functions.sweep)

    table.let_record_arrivals(functions.watch)
    bucket.let_read(functions.watch)
    schedules.let_schedule_checks(functions.watch)


def _grant_follow_up(functions: Functions, foundation: Foundation, settings: Settings) -> None:
    table, bucket, alerts = foundation.table, foundation.bucket, foundation.alerts

    table.let_record_outcomes(functions.act)
    bucket.let_request_stop(functions.act)
    bucket.let_request_zoom(functions.act)
    let_stop_jobs(functions.act)
    let_stop_batch_jobs(functions.act, settings.batch_queues)
    alerts.let_publish(functions.act)
    alerts.let_know_recipients(functions.act)

    alerts.let_publish(functions.notify)
    table.let_claim_messages(functions.notify)

    for webhook, function in functions.webhooks:
        webhook.let_read_url(function)

    table.let_read(functions.write_report)
    bucket.let_read(functions.write_report)
    bucket.let_write_report(functions.write_report)

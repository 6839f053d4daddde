"""One event of every kind, as the code makes it: for the schemas, the documentation and the letters."""

from __future__ import annotations

from functions.decisions.outbox import Moment, OutboxEntry
from functions.decisions.rule_events import action_outcome
from functions.decisions.rule_lifecycle import Failed, Found, Passed, finish, judge
from functions.decisions.run_events import old_state_change, run_state_changed, summary_of
from smdebug.diagnosis.evidence import Evidence, evidence_of
from smdebug.rules import Finding
from smdebug.rules.rule_sets import documentation_of
from smdebug.service.records import RuleConfiguration, RuleRecord, RunRecord, RunState

NOON = 1_795_262_400.0  # 2026-11-21T12:00:00Z
RUN = RunRecord(
    "my-bucket/mnist-1",
    num_workers=2,
    run_id="7f9c1d0e",
    first_seen=NOON - 600,
)
VANISHING = RuleConfiguration(
    "fc-gradients",
    "VanishingGradient",
    {"threshold": "1e-07"},
    actions=({"name": "stoptraining"}, {"name": "email", "endpoint": "me@example.org"}),
)
FINDINGS = (
    Finding(
        "gradient/fc2_weight",
        "mean of |x|",
        3.1e-09,
        1e-07,
        worker="worker_0",
        message="gradient/fc2_weight: the mean of |gradient| is 3.1e-09, below 1e-07",
        step=400,
        cause="vanishing gradient",
    ).to_dict(),
    Finding(
        "gradient/fc1_weight",
        "mean of |x|",
        8.8e-08,
        1e-07,
        worker="worker_0",
        message="gradient/fc1_weight: the mean of |gradient| is 8.8e-08, below 1e-07",
        step=400,
        cause="vanishing gradient",
    ).to_dict(),
)

EVIDENCE = tuple(
    evidence_of(
        "fc-gradients",
        [(400, FINDINGS)],
        advice={"": ("Add residual connections or normalisation between the layers.",)},
        docs=documentation_of("VanishingGradient"),
    )
)
OF_ANOTHER_RULE = Evidence(
    "not learning", "LossNotDecreasing", "loss is 0.69 at step 400, unchanged from 0.69", 400, 400
)


def moment(step: int = 400, **more: object) -> Moment:
    times = {
        "saved": NOON + 0.12,
        "uploaded": NOON + 0.9,
        "indexed": NOON + 1.6,
        "evaluated": NOON + 2.4,
    }
    return Moment.of(RUN, step, **{**times, "mode": "TRAIN", "mode_step": step, **more})


def rule(configuration: RuleConfiguration = VANISHING) -> RuleRecord:
    return RuleRecord(configuration.id, configuration.name)


def every_kind() -> dict[str, OutboxEntry]:
    """Return them by name."""
    good, _ = judge(rule(), VANISHING, Passed(), moment(300))
    found, (condition, issues_found) = judge(
        good, VANISHING, Found(FINDINGS, EVIDENCE), moment(400), [OF_ANOTHER_RULE]
    )
    later = moment(500, evaluated=NOON + 60, saved=NOON + 58, uploaded=NOON + 59, indexed=NOON + 59.5)
    resolved, (clear,) = judge(found, VANISHING, Passed(), later)
    failed, (error,) = judge(good, VANISHING, Failed("KeyError: 'fc2'"), moment(400))
    _, (nothing,) = finish(good, VANISHING, later, evaluated=6, unseen=0)
    ended = RunRecord(**{**vars(RUN), "state": RunState.FINISHED, "ended_at": NOON + 70, "job": "mnist-1"})
    summary = summary_of([(VANISHING, resolved)], steps=6, last_step=500)
    return {
        "found": condition,
        "resolved": clear,
        "issues found": issues_found,
        "error": error,
        "no issues found": nothing,
        "finished": run_state_changed(ended, "finished", NOON + 131, summary=summary),
        "silent": run_state_changed(
            RunRecord(**{**vars(RUN), "state": RunState.SILENT}), "silent", NOON + 1900
        ),
        "in trouble": run_state_changed(
            RunRecord(
                **{
                    **vars(RUN),
                    "troubles": {"rules.json": "s3://my-bucket/mnist-1/rules.json: it is not JSON: …"},
                }
            ),
            "trouble",
            NOON,
        ),
        "action": action_outcome(
            condition.detail,
            {"name": "stoptraining"},
            effect="control object",
            done=True,
            message="Stop requested: wrote s3://my-bucket/mnist-1/control/stop.",
            now=NOON + 3.1,
        ),
        "old": old_state_change(
            ended, [resolved, failed], NOON + 131, account="123456789012", region="us-east-1"
        ),
        "old of another trainer": old_state_change(RUN, [found], NOON + 3),
    }

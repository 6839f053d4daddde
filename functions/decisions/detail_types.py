"""The kinds of events, by their detail types on EventBridge."""

CONDITION_MET = "Rule Evaluation Condition Met"
ISSUE_RESOLVED = "Rule Issue Resolved"
STATUS_CHANGE = "Rule Evaluation Status Change"
RUN_STATE_CHANGE = "Run State Change"
ACTION_OUTCOME = "Rule Action Outcome"
OLD_STATE_CHANGE = "SageMaker Training Job State Change"  # for functions written for SageMaker

DETAIL_TYPES = (
    CONDITION_MET,
    ISSUE_RESOLVED,
    STATUS_CHANGE,
    RUN_STATE_CHANGE,
    ACTION_OUTCOME,
    OLD_STATE_CHANGE,
)

NOT_CHECKED = "Not checked"
"""Begins the reason of a rule that had nothing to check."""

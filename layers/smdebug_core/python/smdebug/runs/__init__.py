"""A saved run as a whole: its contents, its integrity, rules over it, and its differences from another.

run = open_run("s3://bucket/run")
overview_of(run)
verify("s3://bucket/run").problems
"""

from smdebug.runs.comparing import Comparison, Difference, compare
from smdebug.runs.evaluation.diagnosing import Diagnosis, diagnose
from smdebug.runs.evaluation.evaluating import RuleResult, evaluate
from smdebug.runs.left_out import LeftOut, left_out_of
from smdebug.runs.opening import open_run, runs_below
from smdebug.runs.overview import Overview, overview_of
from smdebug.runs.statistics import TensorSummary, statistics_of
from smdebug.runs.verification import Problem, Verification
from smdebug.runs.verifying import verify

__all__ = [
    "Comparison",
    "Diagnosis",
    "Difference",
    "LeftOut",
    "Overview",
    "Problem",
    "RuleResult",
    "TensorSummary",
    "Verification",
    "compare",
    "diagnose",
    "evaluate",
    "left_out_of",
    "open_run",
    "overview_of",
    "runs_below",
    "statistics_of",
    "verify",
]

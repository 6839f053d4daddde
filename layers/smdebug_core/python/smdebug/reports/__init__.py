"""A run as one page of HTML, to keep or to send.

write_report("./my-run", "report.html", rules=["VanishingGradient"])
"""

from smdebug.reports.gathering import Gathered, gather
from smdebug.reports.page import page_of
from smdebug.reports.verdicts import Verdict, of_results, of_service
from smdebug.reports.writing import evaluated, write_report

__all__ = [
    "Gathered",
    "Verdict",
    "evaluated",
    "gather",
    "of_results",
    "of_service",
    "page_of",
    "write_report",
]

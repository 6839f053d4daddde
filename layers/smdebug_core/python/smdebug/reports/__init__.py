"""A run as one page of HTML, to keep or to send: the page of `smdebug ui` with its data in it.

write_report("./my-run", "report.html", rules=["VanishingGradient"])
"""

from smdebug.reports.gathering import gather
from smdebug.reports.writing import evaluated, write_report
from smdebug.runs.verdicts import Verdict, of_results, of_service
from smdebug.ui.embedding import Content, page_of

__all__ = [
    "Content",
    "Verdict",
    "evaluated",
    "gather",
    "of_results",
    "of_service",
    "page_of",
    "write_report",
]

"""From the findings of a run to one diagnosis: the causes, and their symptoms beneath them.

    evidence = evidence_of("VanishingGradient", found=[(40, findings), (60, findings)])
    for issue in fold([*evidence, *more]):
        print("\n".join(as_text(issue)))

Everything here is pure: plain data in, plain data out.
"""

from smdebug.diagnosis.causes import CAUSES
from smdebug.diagnosis.evidence import Evidence, evidence_of
from smdebug.diagnosis.folding import fold
from smdebug.diagnosis.issues import Issue, Symptom
from smdebug.diagnosis.wording import as_text, headline

__all__ = [
    "CAUSES",
    "Evidence",
    "Issue",
    "Symptom",
    "as_text",
    "evidence_of",
    "fold",
    "headline",
]

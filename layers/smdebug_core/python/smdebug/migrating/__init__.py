"""Scans code written for the old library and for SageMaker, without running it."""

from smdebug.migrating.findings import Conversion, Finding, Scan, Verdict
from smdebug.migrating.scanner import scan

__all__ = ["Conversion", "Finding", "Scan", "Verdict", "scan"]

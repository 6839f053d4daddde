"""Functions that read shards, as the benchmarks have them: the real code, and the time that it would take."""

from __future__ import annotations

import functools
import json
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from bench.costs import boto_cpu
from bench.costs.bill import LOG_EVENT, LOG_LINES, Bill
from functions.evaluation.reading_shards import read_shard
from infra.settings import Settings
from smdebug.storage import Storage
from smdebug.storage.s3_clients import REQUESTS_AT_A_TIME

INVOKING = 0.03  # seconds: what calling a warm function takes beside the function itself
READER_GB = 0.5
ACCOUNT = Settings(account_concurrency=1000)
"""What a usual account allows."""


@functools.cache
def seconds_of_invoking() -> float:
    """The processor time of boto3 for one call of a function that answers with the files of a shard."""
    return boto_cpu.seconds_of_invoking()


@dataclass
class Shard:
    """What reading one shard took."""

    files: int
    processor: float  # of this machine, without boto3
    seconds: float = 0.0  # of the function


def bill_shard(bill: Bill, shard: Shard) -> None:
    """Bill the function that reads a shard."""
    bill.used["S3 GET"] += shard.files
    bill.used["invocation"] += 1
    bill.used["GB-second"] += shard.seconds * READER_GB
    bill.used["log byte"] += LOG_LINES + 3 * LOG_EVENT


@dataclass
class MeasuredReaders:
    """Reads shards by threads of this process; `take` is told the time of each, and may let it pass."""

    open_run: Callable[[str], Storage]
    take: Callable[[Shard], None]
    s3_processor: float  # of boto3, for each request
    processor_of_a_gb: float
    s3_call: float
    at_once: int = ACCOUNT.readers_at_once
    processor: float = 0.0  # of this machine, for all shards
    files: int = 0
    asked: int = 0
    waited: float = 0.0  # seconds, by whoever asked
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> None:
        """Count anew."""
        self.files = self.asked = 0
        self.processor = self.waited = 0.0

    def seconds_of_asking(self) -> float:
        """Return what boto3 took of the processor of whoever asked."""
        return self.asked * seconds_of_invoking() if self.asked else 0.0

    def ask(self, requests: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any] | None]:
        with ThreadPoolExecutor(self.at_once) as threads:
            answers = list(threads.map(self._answer, [json.dumps(request) for request in requests]))
        self.waited += INVOKING + max(seconds for _, seconds in answers)
        return [json.loads(answer) for answer, _ in answers]

    def _answer(self, request: str) -> tuple[str, float]:
        begin = time.thread_time()
        asked = json.loads(request)
        answer = json.dumps(read_shard(self.open_run, asked))
        shard = Shard(len(asked["files"]), time.thread_time() - begin)
        busy = (shard.processor + shard.files * self.s3_processor) / (self.processor_of_a_gb * READER_GB)
        shard.seconds = busy + math.ceil(shard.files / REQUESTS_AT_A_TIME) * self.s3_call
        with self._lock:
            self.processor += shard.processor
            self.asked += 1
            self.files += shard.files
        self.take(shard)
        return answer, shard.seconds


def billed_readers(
    open_run: Callable[[str], Storage], bill: Bill, s3_processor: float, processor_of_a_gb: float, s3: float
) -> MeasuredReaders:
    """Return readers whose functions are on the bill."""
    return MeasuredReaders(open_run, functools.partial(bill_shard, bill), s3_processor, processor_of_a_gb, s3)

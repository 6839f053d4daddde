"""A step of many workers on the local stack, whose files functions beside the evaluation read."""

from __future__ import annotations

from local_aws import LocalAws
from smdebug.storage import open_storage
from tests.functions.saver import FAILING, HEALTHY, Saver

WORKERS = 130


def test_functions_beside_the_evaluation_read_a_step_of_many_workers():
    with LocalAws({"account_concurrency": 200, "default_rules": "ExplodingTensor"}) as aws, aws.as_default():
        debugger = aws.connect()
        place = open_storage(f"s3://{aws.bucket}/experiments/large")
        savers = [Saver(place, f"worker_{n}", num_workers=WORKERS) for n in range(WORKERS)]
        savers[0].begin()
        for saver in savers[:-1]:
            saver.save(0, HEALTHY)
        savers[-1].save(0, FAILING)
        run = debugger.run("experiments/large")
        (finding,) = aws.wait_until(run.findings, what="the finding", seconds=120)
        assert (finding.step, finding.worst[0]["worker"]) == (0, f"worker_{WORKERS - 1}")
        # Five for the index files and five for the event files, each of up to 32.
        shards = aws.invocations("read_shard")
        assert len(shards) == 10
        assert not [shard.error for shard in shards if shard.error]
        assert aws.refused() == []

"""`python -m smdebug.service.stopping QUEUE`: stop the jobs of failing runs on this cluster.

Reads the messages of a queue that the deployed debugger has for it (`stop_queues`) and stops the job that
says that it trains the run. It goes on until it is ended; with `--once`, until the queue is empty.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from smdebug.exceptions import SMDebugError, UnreadableMessage
from smdebug.plain_text import escaped
from smdebug.service.aws import Clients
from smdebug.service.queues.messages import handle_messages
from smdebug.service.stopping.clusters import Cluster, carry_out
from smdebug.service.stopping.kubernetes import KubernetesJobs
from smdebug.service.stopping.slurm import SlurmJobs
from smdebug.service.stopping.stop_requests import stop_request


def main(arguments: Sequence[str] | None = None, clients: Clients | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m smdebug.service.stopping",
        description="Stop the jobs of failing runs on this cluster, as the deployed debugger asks for it.",
    )
    parser.add_argument("queue", metavar="QUEUE", help="the address of the queue, from the output StopQueues")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--kubernetes", metavar="NAMESPACE", help="suspend jobs of this namespace")
    where.add_argument("--slurm", action="store_true", help="cancel jobs of this user")
    parser.add_argument("--api", metavar="URL", default="", help="the API of Kubernetes, outside of a pod")
    parser.add_argument("--once", action="store_true", help="end when the queue is empty")
    options = parser.parse_args(arguments)
    try:
        cluster: Cluster = (
            KubernetesJobs(options.kubernetes, api=options.api) if options.kubernetes else SlurmJobs()
        )
        handle_messages(
            options.queue,
            lambda message: _carry_out(message, cluster),
            _say_failed,
            until_empty=options.once,
            clients=clients,
        )
    except SMDebugError as error:
        print(f"error: {escaped(str(error))}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        pass
    return 0


def _carry_out(message: str, cluster: Cluster) -> None:
    request = stop_request(message)
    if request is not None:
        print(escaped(carry_out(request, cluster)), flush=True)


def _say_failed(error: SMDebugError) -> None:
    again = "" if isinstance(error, UnreadableMessage) else "; tried again in a minute"
    print(f"error: {escaped(str(error))}{again}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""What an agent learns from `smdebug mcp`: a scripted policy that sees the answers of its tools and no file.

    python -m corpus.measuring.agent build/verdicts

It asks for the diagnosis of each recorded training. It names the cause of the first problem, and that nothing
is wrong if the verdict says so. Faults whose run the hook did not see are left out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from corpus.cases import Fault
from corpus.measuring.recording import NOTE
from corpus.measuring.zoo import trainings
from smdebug.ui.agents.tools import Tools

NOTHING_WRONG = "nothing wrong"


def named_by_the_policy(tools: Tools, run: str) -> str:
    """Return the cause that the policy names from the answers alone."""
    answer = tools.diagnose(run)
    return str(answer["problems"][0]["cause"] if answer["problems"] else answer["verdict"])


def main(argv: Sequence[str] | None = None) -> int:
    """Print the shares, and what was named wrongly."""
    parser = argparse.ArgumentParser(prog="python -m corpus.measuring.agent", description=__doc__)
    parser.add_argument("keep", type=Path, help="folder of the recorded runs")
    folder = parser.parse_args(argv).keep
    counts = {"faulty": [0, 0], "healthy": [0, 0]}
    for trained in trainings():
        place = folder / trained.kind / trained.case.name.replace(" ", "-")
        if not (place / NOTE).is_file():
            continue
        for _, where in json.loads((place / NOTE).read_text())["runs"]:
            is_faulty = trained.kind == "faulty"
            right = trained.case.causes if isinstance(trained.case, Fault) and is_faulty else (NOTHING_WRONG,)
            named = named_by_the_policy(Tools([str(place)]), Path(where).name)
            count = counts["faulty" if is_faulty else "healthy"]
            count[0] += named in right
            count[1] += 1
            if named not in right:
                print(f"{trained.name}: {named}, not {' or '.join(right)}")
    for kind, (right_ones, of) in counts.items():
        print(f"{kind}: {right_ones} of {of} named rightly")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

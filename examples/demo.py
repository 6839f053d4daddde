"""`make demo`: see infra/local/demo.py, which this runs from wherever it is called."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from infra.local.demo import main

if __name__ == "__main__":
    sys.exit(main())

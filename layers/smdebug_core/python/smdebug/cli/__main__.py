"""`python -m smdebug.cli`: the `smdebug` command."""

import sys

from smdebug.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

"""For code and commands written against tornasole: the invoker is `smdebug.rules.rule_invoker`."""

import sys

from smdebug.rules.rule_invoker import invoke, invoke_rule, main

__all__ = ["invoke", "invoke_rule", "main"]

if __name__ == "__main__":
    sys.exit(main())

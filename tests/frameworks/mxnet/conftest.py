"""MXNet 1.9 warns of what it does with numpy as soon as it is imported."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import mxnet  # noqa: F401

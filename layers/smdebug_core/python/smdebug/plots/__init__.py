"""Pictures and animations of tensors, with matplotlib.

plots.heatmap("./my-run", "^gradient").save("gradients.png")
plots.create_interactive_matplotlib_histogram(rule.tensors, filename="gradients.gif")

A notebook displays each picture. A run is a path or an open trial; a dictionary of runs draws them side by
side.
"""

from smdebug.plots.animation import create_interactive_matplotlib_histogram
from smdebug.plots.drawing import (
    dead_units,
    heatmap,
    histogram,
    line,
    ridge,
    variance_across_layers,
)
from smdebug.plots.picture import Picture
from smdebug.plots.values import are_scalars, values_of

__all__ = [
    "Picture",
    "are_scalars",
    "create_interactive_matplotlib_histogram",
    "dead_units",
    "heatmap",
    "histogram",
    "line",
    "ridge",
    "values_of",
    "variance_across_layers",
]

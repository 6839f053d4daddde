"""A figure for a notebook or a file, made without pyplot, so that no global state changes."""

from __future__ import annotations

import base64
import io
import os
import warnings
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smdebug.exceptions import SMDebugCustomerError, SMDebugValueError
from smdebug.extras import install_command

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMS = ("png", "svg", "pdf", "html", "gif")
ACCENT, SECOND = "#1d5fd0", "#c2410c"
_DPI = 110


class Picture:
    """A plot; `figure` is matplotlib's, and may be changed."""

    def __init__(self, figure: Figure):
        self.figure = figure

    def png(self) -> bytes:
        """The picture as PNG."""
        made = io.BytesIO()
        self._draw(made, "png")
        return made.getvalue()

    def save(self, to: str | os.PathLike[str]) -> Path:
        """Write the picture in the format of the file's extension: png, svg, pdf or html."""
        place = Path(to).expanduser()
        form = form_of(place)
        if form == "gif":
            raise SMDebugValueError("A .gif is an animation, which only histograms over steps can be")
        place.parent.mkdir(parents=True, exist_ok=True)
        if form == "html":
            picture = base64.b64encode(self.png()).decode()
            title = escape(place.stem)
            place.write_text(
                f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
                f'<img alt="{title}" style="max-width:100%" src="data:image/png;base64,{picture}">',
                encoding="utf-8",
            )
        else:
            self._draw(place, form)
        return place

    def _draw(self, to: Path | io.BytesIO, form: str) -> None:
        with warnings.catch_warnings():
            # A letter that the font lacks is drawn as a box; that needs no warning.
            warnings.filterwarnings("ignore", r"Glyph \d+", UserWarning)
            self.figure.savefig(to, format=form, dpi=_DPI)

    def _repr_png_(self) -> bytes:
        return self.png()


def form_of(place: str | os.PathLike[str]) -> str:
    """Return the format of a file's extension; raise `SMDebugValueError` if it is not supported."""
    form = Path(place).suffix.lower().removeprefix(".")
    if form not in FORMS:
        raise SMDebugValueError(
            f"{os.fspath(place)}: the name of a picture must end in .{', .'.join(FORMS[:-1])} or .{FORMS[-1]}"
        )
    return form


def panels(
    titles: Sequence[str], *, columns: int | None = None, size: tuple[float, float] = (3.4, 2.3)
) -> tuple[Figure, list[Axes]]:
    """A figure with a panel for each title."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SMDebugCustomerError(f"Plots need matplotlib: {install_command('plots')}") from error
    across = columns or min(4, max(1, round(len(titles) ** 0.5)))
    down = -(-len(titles) // across)
    figure = Figure(figsize=(size[0] * across, size[1] * down), layout="constrained")
    grid: Any = figure.subplots(down, across, squeeze=False)
    axes = list(grid.flat)
    for unused in axes[len(titles) :]:
        unused.set_axis_off()
    for axis, title in zip(axes, titles, strict=False):
        axis.set_title(_shortened(title), fontsize=8 if len(title) <= 36 else 6.5)
        axis.tick_params(labelsize=7)
        axis.locator_params(nbins=5)
        axis.ticklabel_format(style="sci", scilimits=(-3, 4))
        for line in (axis.xaxis, axis.yaxis):
            line.get_offset_text().set_fontsize(6)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes[: len(titles)]


def _shortened(title: str, most: int = 48) -> str:
    title = title.replace("$", r"\$")
    return title if len(title) <= most else f"…{title[1 - most :]}"

"""Animated histograms over the steps of a training."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from smdebug.exceptions import SMDebugValueError
from smdebug.plots.picture import ACCENT, form_of, panels
from smdebug.plots.values import edges_of, flat

MOST_FRAMES = 100
_BINS = 50
_DPI = 80


def create_interactive_matplotlib_histogram(
    tensors: Mapping[str, Mapping[int, Any]],
    filename: str | os.PathLike[str] = "images/histogram.gif",
    *,
    most_frames: int = MOST_FRAMES,
    milliseconds: int = 120,
    progress: Callable[[int], Any] = lambda done: None,
) -> Path:
    """Write an animation with a histogram per tensor and a frame per step; return its path.

    `tensors` is `{name: {step: value}}`, as a rule collects them. Each panel keeps its axes over all frames.
    Missing folders are created. At most `most_frames` evenly spread steps are drawn. `progress` is called
    with 1 for each frame.
    """
    place = Path(filename).expanduser()
    if form_of(place) != "gif":
        raise SMDebugValueError(f"{filename}: the name of an animation must end in .gif")
    known = {name: _numbers(over_steps) for name, over_steps in tensors.items()}
    known = {name: over_steps for name, over_steps in known.items() if over_steps}
    if not known:
        raise SMDebugValueError("No tensor has values to draw")
    steps = sorted({step for over_steps in known.values() for step in over_steps})
    if len(steps) > most_frames:
        last = len(steps) - 1
        steps = [steps[round(at * last / max(1, most_frames - 1))] for at in range(most_frames)]
    frames = _frames(known, steps, progress)
    first = next(frames)
    place.parent.mkdir(parents=True, exist_ok=True)
    first.save(  # draws the other frames, one by one
        place, format="GIF", save_all=True, append_images=frames, duration=milliseconds, loop=0
    )
    return place


def _numbers(over_steps: Mapping[int, Any]) -> dict[int, Any]:
    numbers = {int(step): flat(value) for step, value in over_steps.items()}
    return {step: value for step, value in numbers.items() if value.size}


def _frames(
    known: Mapping[str, Mapping[int, Any]], steps: list[int], progress: Callable[[int], Any]
) -> Iterator[Any]:
    """Yield a picture for each step. The panels are drawn once, each frame adds its bars."""
    figure, axes = panels(list(known), size=(3.0, 2.2))
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    figure.set_dpi(_DPI)
    canvas: Any = FigureCanvasAgg(figure)
    title = figure.suptitle(f"step {steps[-1]}", fontsize=10)
    bars, counted = [], []
    for axis, over_steps in zip(axes, known.values(), strict=True):
        edges = edges_of(over_steps.values(), _BINS)
        counts = {step: np.histogram(over_steps[step], edges)[0] for step in steps if step in over_steps}
        top = max((int(count.max()) for count in counts.values()), default=1)
        axis.set_xlim(edges[0], edges[-1])
        axis.set_ylim(0, 1.05 * max(1, top))
        patch = axis.stairs(np.zeros(_BINS), edges, fill=True, color=ACCENT, animated=True)
        bars.append((axis, patch, edges))
        counted.append(counts)
    title.set_animated(True)
    canvas.draw()
    background = canvas.copy_from_bbox(figure.bbox)
    renderer = canvas.get_renderer()
    for step in steps:
        canvas.restore_region(background)
        title.set_text(f"step {step}")
        figure.draw_artist(title)
        for (axis, patch, edges), counts in zip(bars, counted, strict=True):
            if step in counts:
                patch.set_data(counts[step], edges)
                axis.draw_artist(patch)
        pixels = np.asarray(renderer.buffer_rgba())[..., :3]
        picture = Image.fromarray(np.ascontiguousarray(pixels))
        yield picture.quantize(colors=48, method=Image.Quantize.FASTOCTREE)
        progress(1)

// The colours and dashes that distinguish the runs of a comparison.

import { color, h, sized } from "./dom.js";

export const CURVES = [
  "curve",
  "curve2",
  "curve3",
  "curve4",
  "curve5",
  "curve6",
  "curve7",
  "curve8",
  "curve9",
  "curve10",
];

// The ink of the run at a place: ten colours, then the same ones dashed, then dotted.
export function inkOf(place) {
  return {
    stroke: color(CURVES[place % CURVES.length]),
    dash: [[], [8, 4], [2, 3], [10, 3, 2, 3]][Math.floor(place / CURVES.length) % 4],
  };
}

// A short piece of a run's curve, which distinguishes the runs of a comparison.
export function swatch(place) {
  const canvas = h("canvas", { class: "swatch", "aria-hidden": "true" });
  const context = sized(canvas, 18, 8);
  const { stroke, dash } = inkOf(place);
  context.strokeStyle = stroke;
  context.lineWidth = 2.5;
  context.setLineDash(dash);
  context.beginPath();
  context.moveTo(0, 4);
  context.lineTo(18, 4);
  context.stroke();
  return canvas;
}

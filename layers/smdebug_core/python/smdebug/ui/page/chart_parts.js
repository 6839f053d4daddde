// What all charts by uPlot share: their axes, the marks of problems, points between gaps.

import uPlot from "./vendored/uplot-1.6.32.esm.js";
import { distancesOf, markOf } from "./axis.js";
import { color } from "./dom.js";
import { number } from "./format.js";
import { inkOf } from "./inks.js";

// The onsets of problems as numbered dashed lines, and in red the steps whose values are not finite.
export function marksPlugin(time, missing = () => [], across = (step) => step) {
  return {
    hooks: {
      draw: (chart) => {
        const { ctx } = chart;
        const { left, top, width, height } = chart.bbox;
        const ratio = devicePixelRatio || 1;
        ctx.save();
        ctx.fillStyle = color("bad");
        missing().forEach(([first, last]) => {
          const from = Math.max(left, chart.valToPos(across(first), "x", true));
          const to = Math.min(left + width, chart.valToPos(across(last), "x", true));
          if (to >= from) ctx.fillRect(from - ratio, top + height - 4 * ratio, to - from + 2 * ratio, 4 * ratio);
        });
        ctx.strokeStyle = color("bad");
        ctx.font = `600 ${11 * ratio}px system-ui, sans-serif`;
        ctx.textBaseline = "middle";
        ctx.textAlign = "left";
        ctx.setLineDash([4 * ratio, 3 * ratio]);
        time.onsets.forEach(({ step, label, ink }, place) => {
          const x = chart.valToPos(across(step), "x", true);
          if (x < left || x > left + width) return;
          const colour = ink === undefined ? color("bad") : ink === null ? color("quiet") : inkOf(ink).stroke;
          ctx.strokeStyle = colour;
          ctx.beginPath();
          ctx.moveTo(x, top);
          ctx.lineTo(x, top + height);
          ctx.stroke();
          const text = label || String(place + 1);
          const row = top + (label ? 16 * ratio * place : 0); // names are long: below each other
          const size = ctx.measureText(text).width + 8 * ratio;
          const start = x + size > left + width ? x - size : x;
          ctx.fillStyle = colour;
          ctx.fillRect(start, row, size, 15 * ratio);
          ctx.fillStyle = color("back");
          ctx.fillText(text, start + 4 * ratio, row + 8 * ratio);
        });
        ctx.restore();
      },
    },
  };
}

// A line has no length at a value between two gaps: these are drawn as points.
function alone(chart, curve, shown) {
  if (shown) return null;
  const values = chart.data[curve];
  const near = (at, by) => {
    while (values[at + by] === undefined && at + by >= 0 && at + by < values.length) at += by;
    return values[at + by] ?? null;
  };
  const found = [];
  const [first, last] = chart.series[0].idxs;
  for (let at = first; at <= last; at++) {
    if (values[at] !== null && values[at] !== undefined && near(at, -1) === null && near(at, 1) === null)
      found.push(at);
  }
  return found;
}

export const ALONE = { show: false, size: 5, filter: alone };

// The widest label decides how much room an axis takes.
const widthOf = (_, labels) =>
  Math.max(44, 16 + 6.4 * Math.max(0, ...(labels || []).map((label) => String(label ?? "").length)));

// `size` is how much room the vertical axis takes, and `axis` what is across.
/** @param {import("./axis.js").AxisName} [axis] */
export function axes(log, words = number, size = widthOf, axis = "steps") {
  const style = {
    stroke: color("quiet"),
    grid: { stroke: color("line"), width: 1 },
    ticks: { stroke: color("line"), width: 1 },
    font: "11px system-ui, sans-serif",
  };
  return [
    { ...style, size: 28, incrs: distancesOf(axis), values: (_, ticks) => ticks.map((tick) => markOf(axis, tick)) },
    {
      ...style,
      size,
      values: (_, ticks) =>
        ticks.map((tick) => (tick === null ? "" : log ? tick.toExponential(0).replace("e+", "e") : words(tick))),
    },
  ];
}

/**
 * The scale of a vertical axis: logarithmic, or linear with all values unless there are limits.
 * @param {boolean} isLog
 * @param {() => [number, number] | null} limits
 */
export function verticalScale(isLog, limits) {
  if (isLog) return { distr: 3 };
  const { rangeNum } = /** @type {any} */ (uPlot);
  const range = (_, low, high) => (low === null ? [null, null] : rangeNum(...(limits() ?? [low, high]), 0.1, true));
  return { distr: 1, range };
}

// A chart of values that the page has already: quantiles of a tensor, its extremes, how workers differ.

import uPlot from "./vendored/uplot-1.6.32.esm.js";
import { ALONE, axes, marksPlugin } from "./chart_parts.js";
import { color } from "./dom.js";

/** @typedef {import("./timeline.js").TimeLine} TimeLine */
/** @typedef {{name: string, values: (number | null)[], ink: string}} Curve */

/**
 * @param {HTMLElement} place
 * @param {string} title
 * @param {number[]} steps
 * @param {Curve[]} curves
 * @param {TimeLine} time
 * @param {{height?: number, bands?: number[][], missing?: () => number[][]}} options `bands` are filled between two
 *   curves, counted from 1; `missing` has the stretches whose values are not finite
 */
export function plainChart(place, title, steps, curves, time, { height = 190, bands = [], missing = () => [] } = {}) {
  const { paddingLeft, paddingRight } = getComputedStyle(place);
  const room = () => Math.max(200, (place.clientWidth || 500) - parseFloat(paddingLeft) - parseFloat(paddingRight));
  const series = curves.map(({ name, ink }) => ({ label: name, stroke: color(ink), width: 1.2, points: ALONE }));
  let pointedAt = false;
  const zoom = () => {
    const { left, width } = chart.select;
    if (width < 4) return;
    time.show(chart.posToVal(left, "x"), chart.posToVal(left + width, "x"));
    chart.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
  };
  const follow = (self) => {
    if (!pointedAt) time.point(self.cursor.left >= 0 ? self.posToVal(self.cursor.left, "x") : null, self);
  };
  const options = {
    title,
    width: room(),
    height,
    series: [{ label: "step" }, ...series],
    axes: axes(false),
    bands: bands.map((pair) => ({ series: pair, fill: color("band") })),
    scales: { x: { time: false, range: () => time.window } },
    legend: { show: true, live: true },
    cursor: { drag: { x: true, y: false, setScale: false }, y: false },
    plugins: [marksPlugin(time, missing), { hooks: { setSelect: zoom, setCursor: follow } }],
  };
  const chart = new uPlot(options, [steps, ...curves.map(({ values }) => values)], place);
  const listener = () => chart.setScale("x", { min: time.window[0], max: time.window[1] });
  const pointer = (step, source) => {
    if (source === chart) return;
    pointedAt = true;
    chart.setCursor({ left: step === null ? -10 : chart.valToPos(step, "x"), top: step === null ? -10 : 0 });
    pointedAt = false;
  };
  const observer = new ResizeObserver(() => chart.width !== room() && chart.setSize({ width: room(), height }));
  observer.observe(place);
  chart.over.addEventListener("dblclick", () => time.show(time.first, time.last));
  time.listeners.add(listener);
  time.pointed.add(pointer);
  return {
    chart,
    show(found, values) {
      chart.setData([found, ...values], false);
      listener();
    },
    close() {
      time.listeners.delete(listener);
      time.pointed.delete(pointer);
      observer.disconnect();
      chart.destroy();
    },
  };
}

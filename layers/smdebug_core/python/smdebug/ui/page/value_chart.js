// A chart of values that the page has already.

import uPlot from "./vendored/uplot-1.6.32.esm.js";
import { ALONE, axes, marksPlugin } from "./chart_parts.js";
import { color } from "./dom.js";

// A chart of values that are here already: quantiles of a tensor, its extremes.
export function plainChart(place, title, steps, curves, time, { height = 190, bands = [], missing = () => [] } = {}) {
  const width = Math.max(200, place.clientWidth || 500);
  const series = [{ label: "step" }, ...curves.map(({ name, ink }) => ({ label: name, stroke: color(ink), width: 1.2, points: ALONE }))];
  let pointedAt = false;
  const chart = new uPlot({
    title, width, height, series, axes: axes(false), bands: bands.map((pair) => ({ series: pair, fill: color("band") })),
    scales: { x: { time: false, range: () => time.window } }, legend: { show: true, live: true },
    cursor: { drag: { x: true, y: false, setScale: false }, y: false }, plugins: [marksPlugin(time, missing), { hooks: {
      setSelect: () => {
        const { left, width: wide } = chart.select;
        if (wide < 4) return;
        time.show(chart.posToVal(left, "x"), chart.posToVal(left + wide, "x"));
        chart.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      },
      setCursor: (self) => !pointedAt && time.point(self.cursor.left >= 0 ? self.posToVal(self.cursor.left, "x") : null, self),
    } }],
  }, [steps, ...curves.map(({ values }) => values)], place);
  const listener = () => chart.setScale("x", { min: time.window[0], max: time.window[1] });
  const pointer = (step, source) => {
    if (source === chart) return;
    pointedAt = true;
    chart.setCursor({ left: step === null ? -10 : chart.valToPos(step, "x"), top: step === null ? -10 : 0 });
    pointedAt = false;
  };
  chart.over.addEventListener("dblclick", () => time.show(time.first, time.last));
  time.listeners.add(listener);
  time.pointed.add(pointer);
  return { chart, show: (found, values) => { chart.setData([found, ...values], false); listener(); }, close: () => { time.listeners.delete(listener); time.pointed.delete(pointer); chart.destroy(); } };
}

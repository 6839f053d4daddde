// A chart as a file that a paper or a slide can hold: a picture with its title and its curves' names, or a drawing.

import { markOf, placesBetween } from "./axis.js";
import { blob, report as held } from "./api.js";
import { button, color, csvOf, download, sized } from "./dom.js";
import { inkOf } from "./inks.js";

const FONT = "11px system-ui, sans-serif";

// The names of curves in lines that fit into a width: [{label, place, x, line}].
function keysOf(curves, width, measured) {
  let [x, line] = [0, 0];
  return curves.map((curve) => {
    const size = 34 + measured(curve.label);
    if (x && x + size > width) [x, line] = [0, line + 1];
    const found = { ...curve, x, line };
    x += size;
    return found;
  });
}

export function chartPicture(title, chart, curves) {
  const drawn = chart.ctx.canvas;
  const [width, height] = [chart.width, chart.height];
  const canvas = document.createElement("canvas");
  const measure = sized(canvas, 1, 1);
  measure.font = FONT;
  const keys = keysOf(curves, width - 16, (text) => measure.measureText(text).width);
  const below = keys.length ? 18 * (keys.at(-1).line + 1) + 8 : 8;
  const context = sized(canvas, width, 26 + height + below);
  context.fillStyle = color("back");
  context.fillRect(0, 0, width, 26 + height + below);
  context.fillStyle = color("text");
  context.font = "600 13px system-ui, sans-serif";
  context.fillText(title, 8, 18);
  context.drawImage(drawn, 0, 26, width, height);
  context.font = FONT;
  for (const { label, place, x, line } of keys) {
    const y = 26 + height + 12 + 18 * line;
    const { stroke, dash } = inkOf(place);
    context.strokeStyle = stroke;
    context.lineWidth = 2;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(8 + x, y - 4);
    context.lineTo(26 + x, y - 4);
    context.stroke();
    context.fillText(label, 30 + x, y);
  }
  return canvas;
}

// What XML cannot hold, as control characters in a name, is left out.
const escaped = (text) =>
  text
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "")
    .replace(/[&<>"]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[letter]);

// Round values between two: powers of ten on a logarithmic scale.
export function valuesBetween(low, high, most, log) {
  if (!(high > low)) return [low];
  if (log) {
    const [first, last] = [Math.ceil(Math.log10(low)), Math.floor(Math.log10(high))];
    const every = Math.max(1, Math.ceil((last - first + 1) / most));
    return Array.from(
      { length: Math.max(0, Math.floor((last - first) / every) + 1) },
      (_, at) => 10 ** (first + at * every),
    );
  }
  const rough = (high - low) / most;
  const size = 10 ** Math.floor(Math.log10(rough));
  const every = [1, 2, 5, 10].map((each) => each * size).find((each) => each >= rough);
  const first = Math.ceil(low / every - 1e-9);
  return Array.from({ length: Math.floor(high / every + 1e-9) - first + 1 }, (_, at) => (first + at) * every);
}

// One path per curve. It breaks where a value is not finite (null), and not at steps of other curves (undefined).
function pathOf(chart, values) {
  let pen = "M";
  return chart.data[0]
    .map((step, at) => {
      if (values[at] === undefined) return "";
      if (values[at] === null) {
        pen = "M";
        return "";
      }
      const point = `${pen}${chart.valToPos(step, "x").toFixed(1)},${chart.valToPos(values[at], "y").toFixed(1)}`;
      pen = "L";
      return point;
    })
    .join("");
}

// The chart with its axes, the onsets of problems and the names of its curves: [{at, place, label}].
export function svgOf(title, chart, curves, { log, words, onsets, hasLegend, axis }) {
  const [width, height] = [chart.over.clientWidth, chart.over.clientHeight];
  const text = (x, y, content, anchor = "start", ink = "text") =>
    `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" font-size="11" font-family="system-ui, sans-serif" ` +
    `text-anchor="${anchor}" fill="${color(ink)}">${escaped(content)}</text>`;
  const line = (x1, y1, x2, y2, ink, more = "") =>
    `<line x1="${x1.toFixed(1)}" y1="${y1.toFixed(1)}" x2="${x2.toFixed(1)}" y2="${y2.toFixed(1)}" ` +
    `stroke="${ink}"${more}/>`;
  const dashed = (dash) => (dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : "");
  const { x, y } = chart.scales;
  const columns = placesBetween(axis, x.min, x.max, width / 90).map((place) => [
    chart.valToPos(place, "x"),
    markOf(axis, place),
  ]);
  const rows =
    Number.isFinite(y.min) && Number.isFinite(y.max)
      ? valuesBetween(y.min, y.max, Math.max(2, height / 40), log).map((value) => [
          chart.valToPos(value, "y"),
          words(value),
        ])
      : [];
  const paths = curves.flatMap(({ at, place, label }) =>
    [2 * at + 1, 2 * at + 2].map(
      (column) =>
        `<path fill="none" stroke="${color_of(place)}" stroke-width="1.4"${dashed(inkOf(place).dash)} ` +
        `d="${pathOf(chart, chart.data[column])}"><title>${escaped(label)}</title></path>`,
    ),
  );
  const marks = onsets
    .filter(({ step }) => step >= x.min && step <= x.max)
    .map(({ step, label }, at) => {
      const px = chart.valToPos(step, "x");
      return (
        line(px, 0, px, height, color("bad"), ' stroke-dasharray="4 3"') +
        text(px + 3, 10, label || String(at + 1), "start", "bad")
      );
    });
  const keys = hasLegend ? keysOf(curves, width, (label) => 6.5 * label.length) : [];
  const below = keys.length ? 18 * (keys.at(-1).line + 1) + 30 : 30;
  const box = `-70 -26 ${width + 90} ${height + 26 + below}`;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${box}" width="${width + 90}" height="${height + 26 + below}">` +
    `<rect x="-70" y="-26" width="100%" height="100%" fill="${color("back")}"/>` +
    `<clipPath id="inside"><rect width="${width}" height="${height}"/></clipPath>` +
    columns
      .map(([px, label]) => line(px, 0, px, height, color("line")) + text(px, height + 16, label, "middle", "quiet"))
      .join("") +
    rows
      .map(([py, label]) => line(0, py, width, py, color("line")) + text(-6, py + 4, label, "end", "quiet"))
      .join("") +
    `<g clip-path="url(#inside)">${paths.join("")}</g>` +
    marks.join("") +
    text(0, -10, title) +
    keys
      .map(({ label, place, x: px, line: row }) => {
        const py = height + 38 + 18 * row;
        return (
          line(px, py - 4, px + 18, py - 4, color_of(place), ` stroke-width="2"${dashed(inkOf(place).dash)}`) +
          text(px + 22, py, label)
        );
      })
      .join("") +
    "</svg>"
  );
}

const color_of = (place) => inkOf(place).stroke;

// What curves show as rows of a table: stretches of steps, with the smallest and the largest value of each curve.
export function tableOf(curves) {
  const steps = new Map();
  curves.forEach(({ found }, column) =>
    found?.first.forEach((first, place) => {
      const key = `${first} ${found.last[place]}`;
      if (!steps.has(key)) steps.set(key, [first, found.last[place], ...curves.flatMap(() => [null, null])]);
      steps.get(key).splice(2 + 2 * column, 2, found.low[place], found.high[place]);
    }),
  );
  const rows = [...steps.values()].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const names = curves.flatMap(({ label }) => [`smallest ${label}`, `largest ${label}`]);
  return [["first step", "last step", ...names], ...rows];
}

/**
 * The buttons that save a chart of series: as pictures, and its values as a table.
 * @param {import("./series_chart.js").SeriesChart} of
 */
export function saveButtons(of) {
  const { title, sources } = of;
  const picture = () => {
    const curves = of.legend ? of.shownCurves : [];
    chartPicture(title, of.chart, curves).toBlob((image) => download(`${title}.png`, image));
  };
  const drawing = () => {
    const onsets = of.time.onsets.map((onset) => ({ ...onset, step: of.axis.at(onset.step) }));
    const look = { log: of.log, words: of.words, onsets, hasLegend: of.legend !== null, axis: of.axis.name };
    download(`${title}.svg`, svgOf(title, of.chart, of.shownCurves, look), "image/svg+xml");
  };
  const table = async () => {
    const [{ run, name }] = sources;
    download(`${title}.csv`, await blob(`run/${run}/export.csv`, { name }));
  };
  // The stretches of steps on the screen, with the smallest and the largest value of each run.
  const shownTable = () => {
    const rows = tableOf(of.shownCurves.map(({ at, label }) => ({ label, found: of.found[at] })));
    download(`${title}.csv`, csvOf(rows), "text/csv");
  };
  return [
    button("Save as PNG", () => of.chart && picture()),
    button("Save as SVG", () => of.chart && drawing()),
    sources.length === 1 && !held
      ? button("Save every value as CSV", table)
      : button("Save what is shown as CSV", shownTable),
  ];
}

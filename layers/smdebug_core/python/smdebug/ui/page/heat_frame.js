// What surrounds the pixels of the heat map: its steps, the onsets of problems, the scale of its colours, its picture.

import { color, sized } from "./dom.js";
import { count, number } from "./format.js";
import { inkAt } from "./heat_cells.js";
import { ticksOf } from "./timeline.js";

const FONT = "11px system-ui, sans-serif";
const MOST_HEIGHT = 8000; // of a picture

export function drawOnsets(context, time, width, height) {
  const [from, to] = time.window;
  context.strokeStyle = color("bad");
  context.setLineDash([4, 3]);
  time.onsets.forEach(({ step }) => {
    const x = ((step - from) / (to - from)) * width;
    if (x < 0 || x > width) return;
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, height);
    context.stroke();
  });
  context.setLineDash([]);
}

export function drawSteps(context, [from, to], width) {
  context.clearRect(0, 0, width, 22);
  context.fillStyle = context.strokeStyle = color("quiet");
  context.font = FONT;
  for (const step of ticksOf(from, to, width / 90)) {
    const x = ((step - from) / (to - from)) * width;
    context.fillRect(x, 0, 1, 4);
    const text = count(step);
    const half = context.measureText(text).width / 2;
    context.fillText(text, Math.max(0, Math.min(width - 2 * half, x - half)), 16);
  }
}

export function drawScale(context, width, height) {
  for (let at = 0; at < width; at++) {
    context.fillStyle = inkAt(at / (width - 1));
    context.fillRect(at, 0, 1, height);
  }
}

// A text that fits into a width.
function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let end = text.length - 1;
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > width) end--;
  return `${text.slice(0, end)}…`;
}

// The whole heat map as a picture that explains itself: a title, the names of its rows, its steps and its colours.
export function labelledPicture({ title, labels, rowHeight, width, range, time, paintInto }) {
  const [gutter, head, foot] = [260, 30, 54];
  const height = Math.max(1, Math.min(MOST_HEIGHT, Math.ceil(labels.length * rowHeight)));
  const canvas = document.createElement("canvas");
  const context = sized(canvas, gutter + width + 12, head + height + foot);
  context.fillStyle = color("back");
  context.fillRect(0, 0, gutter + width + 12, head + height + foot);
  const part = (w, hgt, draw) => {
    const found = document.createElement("canvas");
    draw(found, w, hgt);
    return found;
  };
  context.fillStyle = color("text");
  context.font = `600 13px system-ui, sans-serif`;
  context.fillText(fitted(context, title, gutter + width - 12), 8, 19);
  const cells = part(width, height, (found) => {
    [found.width, found.height] = [width, height];
    const image = new ImageData(width, height);
    paintInto(image);
    found.getContext("2d").putImageData(image, 0, 0);
    drawOnsets(found.getContext("2d"), time, width, height);
  });
  context.imageSmoothingEnabled = false;
  context.drawImage(cells, gutter, head);
  context.font = FONT;
  context.fillStyle = color("text");
  // Where rows are thinner than a line of text, some of them have their name.
  const every = Math.max(1, Math.ceil(11 / rowHeight));
  labels.forEach(({ text, depth }, at) => {
    const y = head + (at + 0.5) * rowHeight;
    if (at % every || y > head + height) return;
    context.fillText(fitted(context, text, gutter - 16 - 10 * depth), 8 + 10 * depth, y + 4);
  });
  context.drawImage(
    part(width, 22, (found, w) => drawSteps(sized(found, w, 22), time.window, w)),
    gutter,
    head + height,
    width,
    22,
  );
  const y = head + height + 30;
  context.fillStyle = color("quiet");
  const low = number(10 ** range[0]);
  const start = gutter + context.measureText(low).width + 8;
  context.fillText(low, gutter, y + 9);
  context.drawImage(
    part(160, 10, (found, w, hgt) => drawScale(sized(found, w, hgt), w, hgt)),
    start,
    y,
    160,
    10,
  );
  context.fillText(`${number(10 ** range[1])} (logarithmic)`, start + 168, y + 9);
  context.fillStyle = color("bad");
  context.fillText("■ not finite", start + 310, y + 9);
  return canvas;
}

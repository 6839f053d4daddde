// The curve of a loss in a cell of the list of runs; red where it is not finite.

import { color, sized } from "./dom.js";

/**
 * @param {HTMLCanvasElement} canvas
 * @param {(number | null)[]} values
 */
export function sparkline(canvas, values, width = 120, height = 24) {
  const context = sized(canvas, width, height);
  context.clearRect(0, 0, width, height);
  const finite = values.filter((value) => value !== null);
  if (!finite.length) return;
  let low = Math.min(...finite);
  let high = Math.max(...finite);
  const scale = low > 0 && high > 100 * low ? Math.log : (value) => value;
  [low, high] = [scale(low), scale(high)];
  const reach = high - low || 1;
  const x = (at) => 1 + (at / Math.max(1, values.length - 1)) * (width - 2);
  context.strokeStyle = color("curve");
  context.lineWidth = 1.3;
  context.beginPath();
  let pen = false;
  values.forEach((value, at) => {
    if (value === null) {
      pen = false;
      return;
    }
    const y = height - 2 - ((scale(value) - low) / reach) * (height - 4);
    if (pen) context.lineTo(x(at), y);
    else context.moveTo(x(at), y);
    pen = true;
  });
  context.stroke();
  context.fillStyle = color("bad");
  const each = (width - 2) / Math.max(1, values.length - 1);
  values.forEach((value, at) => value === null && context.fillRect(x(at) - each / 2, 0, Math.max(2, each), height));
}

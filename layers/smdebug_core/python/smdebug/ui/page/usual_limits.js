// The limits of the vertical axis that suit most of the curves: one that explodes must not flatten the others.

const FAR = 4; // times the size of the usual curves: what is further away is cut
const SHARE = 0.02; // of a curve's values at each end that may lie outside, if they are far away

/** @typedef {{low: (number | null)[], high: (number | null)[]}} Curve */

/**
 * The smallest and the largest value to show; null if nothing is so far away that it flattens the rest.
 * @param {(Curve | null)[]} curves
 * @returns {[number, number] | null}
 */
export function usualLimits(curves) {
  const ranges = curves.flatMap((each) => (each ? rangesOf(each) : []));
  if (ranges.length < 2) return null;
  const usual = middleOf(ranges);
  const size = FAR * sizeOf(usual);
  const [lowest, highest] = [usual.from - size, usual.to + size];
  // A curve that is elsewhere altogether is not cut: nothing of it would be left.
  const isElsewhere = ({ least, most }) => most < lowest || least > highest;
  const isFar = (from, to) => from < lowest || to > highest;
  if (!size || ranges.some(isElsewhere) || !ranges.some(({ least, most }) => isFar(least, most))) return null;
  const kept = ranges.filter(({ from, to }) => !isFar(from, to));
  return [Math.min(...kept.map(({ from }) => from)), Math.max(...kept.map(({ to }) => to))];
}

const sizeOf = ({ from, to }) => Math.max(Math.abs(from), Math.abs(to));

// The range of middle size; of two, the smaller one.
function middleOf(ranges) {
  const sorted = [...ranges].sort((a, b) => sizeOf(a) - sizeOf(b));
  return sorted[Math.floor((sorted.length - 1) / 2)];
}

function rangesOf({ low, high }) {
  const lows = finite(low);
  const highs = finite(high);
  if (!lows.length || !highs.length) return [];
  const [from, to] = [quantile(lows, SHARE), quantile(highs, 1 - SHARE)];
  return [{ from, to, least: lows[0], most: highs.at(-1) }];
}

const finite = (values) => values.filter((value) => Number.isFinite(value)).sort((a, b) => a - b);

const quantile = (sorted, share) => sorted[Math.round(share * (sorted.length - 1))];

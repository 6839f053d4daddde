// How much the parameters of a sweep matter: the share of the best losses' variance that each explains alone.

export const FEWEST_RUNS = 8;
const RESAMPLES = 200;
const MOST_PARAMETERS = 60;
const NO_PARAMETERS = ["tags", "note", "commit"];

/**
 * @typedef {object} Parameter
 * @property {string} name
 * @property {any[]} values of the runs, in their order
 * @property {number} share from 0 to 1
 * @property {number} low the interval in which 90 % of resampled sweeps are
 * @property {number} high
 * @property {any[]} best the values of the group with the lowest losses: one, or the lowest and the highest number
 */

// The ranks of values from 0 on; equal ones share their mean rank.
export function ranksOf(values) {
  const order = values.map((_, at) => at).sort((a, b) => values[a] - values[b]);
  const ranks = new Array(values.length);
  for (let from = 0; from < order.length;) {
    let to = from;
    while (to + 1 < order.length && values[order[to + 1]] === values[order[from]]) to++;
    for (let at = from; at <= to; at++) ranks[order[at]] = (from + to) / 2;
    from = to + 1;
  }
  return ranks;
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/**
 * The share of the variance of the losses' ranks that is between groups of runs, without what chance would give.
 * @param {any[]} groups of the runs
 * @param {number[]} losses
 */
export function shareBetween(groups, losses) {
  const ranks = ranksOf(losses);
  const members = new Map();
  groups.forEach((group, at) => members.set(group, [...(members.get(group) ?? []), ranks[at]]));
  const [all, number] = [mean(ranks), ranks.length];
  const total = ranks.reduce((sum, rank) => sum + (rank - all) ** 2, 0);
  if (!total || members.size < 2 || members.size >= number) return 0;
  const between = [...members.values()].reduce((sum, own) => sum + own.length * (mean(own) - all) ** 2, 0);
  return Math.max(0, 1 - ((1 - between / total) * (number - 1)) / (number - members.size));
}

/**
 * The groups that runs are in by a parameter: its values, or of many numbers three or four equal parts of their order.
 * An optimum in the middle is seen, which a correlation would miss.
 * @param {any[]} values
 */
export function groupsOf(values) {
  if (values.some((value) => typeof value !== "number") || new Set(values).size <= 4) return values.map(String);
  const parts = values.length >= 24 ? 4 : 3;
  return ranksOf(values).map((rank) => String(Math.floor((rank * parts) / values.length)));
}

// Places that are drawn with replacement, the same ones each time.
function drawn(number, seed) {
  let state = (seed * 2654435761 + 1) >>> 0;
  return Array.from({ length: number }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * number);
  });
}

/**
 * The parameters that differ, the most important first. Runs without a value of a parameter are left out of its number.
 * @param {Record<string, any>[]} configurations
 * @param {number[]} losses the best loss of each run
 * @returns {Parameter[]}
 */
export function importances(configurations, losses) {
  const every = [...new Set(configurations.flatMap((each) => Object.keys(each)))];
  const names = every.filter((name) => !NO_PARAMETERS.includes(name)).slice(0, MOST_PARAMETERS);
  return names
    .flatMap((name) => {
      const values = configurations.map((each) => each[name] ?? null);
      const known = values.flatMap((value, at) => (value === null ? [] : [at]));
      const own = known.map((at) => values[at]);
      const different = new Set(own).size;
      if (known.length < FEWEST_RUNS || different < 2) return [];
      const isNumber = own.every((value) => typeof value === "number");
      if (!isNumber && different === known.length) return []; // a name of each run, such as its folder
      const [groups, ofRuns] = [groupsOf(own), known.map((at) => losses[at])];
      const shares = Array.from({ length: RESAMPLES }, (_, seed) => {
        const places = drawn(known.length, seed + 1);
        return shareBetween(
          places.map((at) => groups[at]),
          places.map((at) => ofRuns[at]),
        );
      }).sort((a, b) => a - b);
      return [
        {
          name,
          values,
          share: shareBetween(groups, ofRuns),
          low: shares[Math.floor(0.05 * RESAMPLES)],
          high: shares[Math.floor(0.95 * RESAMPLES)],
          best: bestOf(own, groups, ofRuns),
        },
      ];
    })
    .sort((a, b) => b.share - a.share);
}

function bestOf(values, groups, losses) {
  const ranks = ranksOf(losses);
  const rankOf = (group) => mean(ranks.filter((_, at) => groups[at] === group));
  const best = [...new Set(groups)].sort((a, b) => rankOf(a) - rankOf(b))[0];
  const own = values.filter((_, at) => groups[at] === best);
  if (own.some((value) => typeof value !== "number")) return [own[0]];
  return [...new Set([Math.min(...own), Math.max(...own)])];
}

/**
 * The places of a parameter's values on its axis, from 0 to 1; null where there is none. Numbers over several powers
 * of ten are on a logarithmic scale.
 * @param {any[]} values
 */
export function placesOn(values) {
  const known = values.filter((value) => value !== null);
  if (known.some((value) => typeof value !== "number")) {
    const names = [...new Set(known.map(String))].sort();
    const last = Math.max(1, names.length - 1);
    return {
      isLog: false,
      ends: [names[0], names.at(-1)],
      places: values.map((value) => (value === null ? null : names.indexOf(String(value)) / last)),
    };
  }
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const isLog = low > 0 && high / low >= 20;
  const scale = isLog ? Math.log : (value) => value;
  const size = scale(high) - scale(low) || 1;
  return {
    isLog,
    ends: [low, high],
    places: values.map((value) => (value === null ? null : (scale(value) - scale(low)) / size)),
  };
}

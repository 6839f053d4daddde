// Numbers, times and durations as people read them.

export function number(value) {
  if (value === null || value === undefined) return "–";
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2).replace("e+", "e");
  return Number(value.toPrecision(4)).toLocaleString("en-US", { maximumSignificantDigits: 4 });
}

export function count(value) {
  return value === null || value === undefined ? "–" : value.toLocaleString("en-US");
}

export function plural(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

export function percent(share) {
  return share === null || share === undefined ? "–" : `${(100 * share).toFixed(2)}%`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || !(seconds >= 0)) return "–";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${(seconds / 3600).toFixed(1)} h`;
  return `${(seconds / 86400).toFixed(1)} d`;
}

export function moment(seconds) {
  if (!seconds) return "–";
  const date = new Date(seconds * 1000);
  const two = (value) => String(value).padStart(2, "0");
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join("-");
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

// How long ago that was; a clock that is wrong makes no negative time.
export function ago(seconds) {
  if (!seconds) return "–";
  const age = Date.now() / 1000 - seconds;
  return age < 30 ? "now" : `${duration(age)} ago`;
}

export function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (value >= 1000 && at < units.length - 1) [value, at] = [value / 1000, at + 1];
  return `${number(value)} ${units[at]}`;
}

// What Trainers log of their pace, which says as little about learning as what the machine did.
const PACE = /(^|[_/])(runtime|preparation_time|(samples|steps|tokens)_per_second|total_flos)$/;

/** @param {string} name */
export const isOfMachine = (name) => name.startsWith("system/") || PACE.test(name);

// How the values of a series are written, by its name.
export function wordsOf(name) {
  if (name.endsWith("_bytes")) return bytes;
  if (name.endsWith("_percent")) return (value) => `${number(value)} %`;
  return name.endsWith("_seconds") ? (value) => `${number(value)} s` : number;
}

const TITLES = {
  loss: "Loss",
  "system/step_seconds": "Seconds per step",
  "system/waiting_seconds": "Seconds per step waiting for data",
  "system/cpu_percent": "Processor, % of a core",
  "system/memory_bytes": "Memory of the process",
  "system/machine_memory_percent": "Memory of the machine, %",
};

/** @type {Record<string, string>} */
const OF_GPU = {
  utilisation_percent: "utilisation, %",
  memory_bytes: "memory used",
  memory_total_bytes: "total memory",
};

function learningRate(optimizer, group) {
  const which = [optimizer ? `optimizer ${optimizer}` : "", optimizer || group ? `group ${group}` : ""];
  return ["Learning rate", ...which].filter(Boolean).join(", ");
}

// The name of a series in words: `system/step_seconds` is "Seconds per step".
export function titleOf(name) {
  if (TITLES[name]) return TITLES[name];
  const rate = /^learning_rate\/(\d+)\/(\d+)$/.exec(name);
  if (rate) return learningRate(Number(rate[1]), Number(rate[2]));
  const gpu = /^system\/gpu(\d+)_(.+)$/.exec(name);
  if (gpu) return `GPU ${gpu[1]}: ${OF_GPU[gpu[2]] || gpu[2].replaceAll("_", " ")}`;
  const words = name
    .replace(/^system\//, "")
    .replace(/_(bytes|percent|seconds)$/, "")
    .replaceAll("_", " ");
  return name.startsWith("system/") ? words.charAt(0).toUpperCase() + words.slice(1) : name;
}

const STATISTICS = {
  count: "number of values",
  non_finite: "NaN or infinite values",
  zeros: "zeros",
  min: "smallest value",
  max: "largest value",
  mean: "mean",
  abs_mean: "mean magnitude",
  rms: "root mean square",
  std: "standard deviation",
  p50: "median",
};

// The name of a statistic in words: `p05` is "5 % quantile".
export function statisticName(name) {
  const share = /^p(\d\d)$/.exec(name);
  return STATISTICS[name] || (share ? `${Number(share[1])} % quantile` : name);
}

const FACTS = {
  training: "model in training mode",
  gradients: "gradients computed",
  shapes: "shapes of the inputs",
  distinct_rows: "distinct rows of the batch",
  row_digests: "digests of the rows",
  optimizer_steps: "optimizer has stepped",
  backward_passes: "backward passes",
  gradients_were_reset: "gradients were reset",
  updates_are_sampled: "updates are sampled",
  other_mode: "modules in another mode",
};

export function factName(name) {
  return FACTS[name] || name.replaceAll("_", " ");
}

// `NoIssuesFound` as words: no issues found.
export function inWords(name) {
  return name.replace(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();
}

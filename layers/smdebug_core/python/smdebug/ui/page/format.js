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
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}`;
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

// How the values of a series are written, by its name.
export function wordsOf(name) {
  if (name.endsWith("_bytes")) return bytes;
  if (name.endsWith("_percent")) return (value) => `${number(value)} %`;
  return name.endsWith("_seconds") ? (value) => `${number(value)} s` : number;
}

// `system/memory_bytes` as a title: Memory.
export function titleOf(name) {
  const words = name.replace(/^system\//, "").replace(/_(bytes|percent|seconds)$/, "").replaceAll("_", " ");
  return name.startsWith("system/") ? words.charAt(0).toUpperCase() + words.slice(1) : name;
}

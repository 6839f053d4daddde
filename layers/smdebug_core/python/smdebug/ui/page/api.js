// Requests to the server that served this page, or to the answers that a report holds. Addresses are relative, so
// that the page works behind a proxy.

import { Embedded } from "./embedded.js";

/** @typedef {import("./types/answers.js").Matrix} Matrix */
/** @typedef {Record<string, string | number | null | undefined>} Values */

const token = new URLSearchParams(location.search).get("token");
/** @type {Record<string, string>} */
const headers = token ? { "x-smdebug-token": token } : {};

/**
 * What makes this page a report: when it was made, its run, and the run that it is compared with.
 * @type {{made: string, version: string, run: string, other: string | null, answers: Record<string, any>} | null}
 */
export const report = JSON.parse(document.getElementById("answers")?.textContent || "null");
const embedded = report && new Embedded(report.answers);

/**
 * An error with the status of the answer: 404 for what does not exist, 409 for what is not there yet.
 * @param {string} text
 * @param {number} status
 */
function problemOf(text, status) {
  return Object.assign(new Error(text), { status });
}

/**
 * @param {string} path
 * @param {RequestInit} options
 */
async function asked(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { ...options, headers: { ...headers, ...options.headers } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is smdebug ui still running?");
  }
  if (!answer.ok) {
    let text = `The server answered ${answer.status}.`;
    try {
      text = (await answer.json()).error || text;
    } catch {
      // not JSON: the status is the message
    }
    throw problemOf(text, answer.status);
  }
  return answer;
}

/** @param {Values} values */
function query(values) {
  const known = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  return known.length ? `?${new URLSearchParams(known.map(([name, value]) => [name, String(value)]))}` : "";
}

/**
 * @param {string} path
 * @param {Values} values
 * @returns {Promise<any>}
 */
export async function get(path, values = {}) {
  if (embedded) return embedded.get(path, values);
  return (await asked(`api/${path}${query(values)}`)).json();
}

/**
 * @param {string} path
 * @param {Values} values
 */
export async function blob(path, values = {}) {
  return (await asked(`api/${path}${query(values)}`)).blob();
}

/**
 * The address of a file, for an element that shows it: to be revoked if it begins with `blob:`.
 * @param {string} path
 * @param {Values} values
 * @returns {Promise<string>}
 */
export async function fileUrl(path, values = {}) {
  if (!embedded) return URL.createObjectURL(await blob(path, values));
  const { type, data } = embedded.get(path, values);
  return `data:${type};base64,${data}`;
}

/**
 * @param {string} path
 * @param {unknown} body
 * @returns {Promise<any>}
 */
export async function post(path, body) {
  const options = {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", "x-smdebug": "1" },
  };
  return (await asked(`api/${path}`, options)).json();
}

/**
 * A statistic of every tensor: see `matrix_bytes` in answers.py for the form.
 * @param {string} path
 * @param {Values & {kind: string, statistic: string}} values
 * @returns {Promise<Matrix>}
 */
export async function matrix(path, values) {
  if (embedded) return embedded.matrix(path, values);
  const data = await (await asked(`api/${path}${query(values)}`)).arrayBuffer();
  const length = new DataView(data).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
  const cells = header.rows * header.columns;
  const low = new Float32Array(data, 4 + length, cells);
  const high = header.exact ? low : new Float32Array(data, 4 + length + 4 * cells, cells);
  return { ...header, low, high };
}

/**
 * Call `changed` whenever the list (no runs) or one of the runs has changed; return what ends that.
 * @param {string[]} runs
 * @param {(versions: object) => void} changed
 * @param {(yes: boolean, message?: string) => void} connected
 */
export function live(runs, changed, connected) {
  const ending = new AbortController();
  (async () => {
    while (!ending.signal.aborted) {
      try {
        const answer = await asked(`api/events${query({ runs: runs.join(",") })}`, {
          signal: ending.signal,
          // Without it the proxies of notebooks hold a stream back until its end.
          headers: { accept: "text/event-stream" },
        });
        connected(true);
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        let text = "";
        for (;;) {
          const { value, done } = await reader.read();
          if (done) break;
          text += value;
          const events = text.split("\n\n");
          text = events.pop();
          const last = events.filter((event) => event.startsWith("data: ")).pop();
          if (last) changed(JSON.parse(last.slice(6)));
        }
      } catch (error) {
        if (ending.signal.aborted) return;
        if (error.status) {
          connected(false, error.message);
          return;
        }
      }
      connected(false);
      await new Promise((resolve) => setTimeout(resolve, 2000));
    }
  })();
  return () => ending.abort();
}

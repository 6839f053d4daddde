// Requests to the server that served this page. Addresses are relative, so that it works behind a proxy.

const token = new URLSearchParams(location.search).get("token");
const headers = token ? { "x-smdebug-token": token } : {};

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
    const problem = new Error(text);
    problem.status = answer.status;
    throw problem;
  }
  return answer;
}

function query(values) {
  const known = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  return known.length ? `?${new URLSearchParams(known)}` : "";
}

export async function get(path, values = {}) {
  return (await asked(`api/${path}${query(values)}`)).json();
}

export async function blob(path, values = {}) {
  return (await asked(`api/${path}${query(values)}`)).blob();
}

export async function post(path, body) {
  const options = {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", "x-smdebug": "1" },
  };
  return (await asked(`api/${path}`, options)).json();
}

// A statistic of every tensor: see `matrix_bytes` in answers.py for the form.
export async function matrix(path, values) {
  const data = await (await asked(`api/${path}${query(values)}`)).arrayBuffer();
  const length = new DataView(data).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
  const cells = header.rows * header.columns;
  header.low = new Float32Array(data, 4 + length, cells);
  header.high = header.exact ? header.low : new Float32Array(data, 4 + length + 4 * cells, cells);
  return header;
}

// Call `changed` whenever the list (no runs) or one of the runs has changed; return what ends that.
export function live(runs, changed, connected) {
  const ending = new AbortController();
  (async () => {
    while (!ending.signal.aborted) {
      try {
        const answer = await asked(`api/events${query({ runs: runs.join(",") })}`, {
          signal: ending.signal,
          headers: { accept: "text/event-stream" }, // without it the proxies of notebooks hold a stream back until its end
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

// The address of a screen, such as `#/run/ID?kind=gradients`: it names what is shown, and keeps what is chosen.

let hash = location.hash;
let written = hash; // what the browser showed then: another one is a click whose event is still to come

/** @param {string} text */
export function parsed(text) {
  const [path, query] = text.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/");
  return { name, what: rest.join("/"), values: new URLSearchParams(query || "") };
}

export const address = () => parsed(hash);

export const shown = () => hash;

/** @param {string} text */
export function goTo(text) {
  hash = text;
  written = location.hash;
}

/**
 * Keep what is chosen in the address, without a new entry in the history.
 * @param {Record<string, string | number | null | undefined>} values
 */
export function remember(values) {
  if (location.hash !== written) return; // the screen is about to go
  const { name, what, values: known } = address();
  for (const [key, value] of Object.entries(values)) {
    if (value === undefined || value === null || value === "") known.delete(key);
    else known.set(key, String(value));
  }
  const query = known.toString();
  hash = `#/${[name, what].filter(Boolean).join("/")}${query ? `?${query}` : ""}`;
  try {
    history.replaceState(null, "", hash);
    written = location.hash;
  } catch {
    // a report inside a notebook has no address of its own
  }
}

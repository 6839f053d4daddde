// The answers that a report holds. They have the forms of the server's, which computes them for each request:
// here windows, heat maps and histories are cut from what the whole run has.

/** @typedef {import("./types/answers.js").SeriesAnswer} SeriesAnswer */
/** @typedef {import("./types/answers.js").HistoryAnswer} HistoryAnswer */
/** @typedef {import("./types/answers.js").AtStepAnswer} AtStepAnswer */
/** @typedef {import("./types/answers.js").Matrix} Matrix */

/**
 * The statistics of a kind of tensors: numbers by statistic, then tensor, then column.
 * @typedef {object} Block
 * @property {string[]} names
 * @property {number} tensors
 * @property {boolean} folded
 * @property {string[]} statistics
 * @property {number[]} first
 * @property {number[]} last
 * @property {Float32Array} low
 * @property {Float32Array} high
 */

/** @param {string} text */
const floatsIn = (text) => new Float32Array(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);

/** @param {number} value */
const plain = (value) => (Number.isFinite(value) ? Number(value.toPrecision(7)) : null);

/** @param {string} text */
function missing(text) {
  return Object.assign(new Error(text), { status: 404 });
}

export class Embedded {
  /** @param {Record<string, any>} answers by the address that asks for them */
  constructor(answers) {
    this.answers = answers;
    /** @type {Map<string, Block>} */
    this.blocks = new Map();
  }

  /**
   * Return the answer to a request.
   * @param {string} path
   * @param {Record<string, any>} values
   */
  get(path, values = {}) {
    const [place, id, what] = path.split("/");
    if (place === "compare") return this.find(`compare/${values.runs}`);
    if (what === "series") return this.series(id, values.name, values.mode);
    if (what === "rows") return this.rows(id, values.kind);
    if (what === "tensor") return this.history(id, values.kind, values.name);
    if (what === "at") return this.atStep(id, values.kind, values.name);
    if (what === "logged" && values.worker) return this.find(`run/${id}/logged/${values.worker}/${values.number}`);
    if (what === "numbers") return this.find(`${path}/${values.kind}`);
    return this.find(path);
  }

  /** @param {string} key */
  find(key) {
    const found = this.answers[key];
    if (found === undefined) throw missing("The report does not have this.");
    return found;
  }

  /**
   * @param {string} id
   * @param {string} name
   * @param {string} [mode]
   * @returns {SeriesAnswer}
   */
  series(id, name, mode) {
    const found = this.find(`run/${id}/series/${name}${mode ? `/${mode}` : ""}`);
    return {
      ...found,
      last: found.last ?? found.first,
      high: found.high ?? found.low,
      not_finite: found.not_finite ?? found.first.map(() => 0),
    };
  }

  /**
   * @param {string} id
   * @param {string} kind
   * @returns {Block}
   */
  block(id, kind) {
    const key = `run/${id}/kind/${kind}`;
    let found = this.blocks.get(key);
    if (!found) {
      const packed = this.find(key);
      const low = floatsIn(packed.low);
      found = /** @type {Block} */ ({ ...packed, low, high: packed.high ? floatsIn(packed.high) : low });
      this.blocks.set(key, found);
    }
    return found;
  }

  /**
   * @param {string} id
   * @param {string} kind
   */
  rows(id, kind) {
    const { names, tensors, folded } = this.block(id, kind);
    return { names, tensors, folded };
  }

  /**
   * A statistic of every tensor; infinite where a tensor has values that are not finite, which statistics leave out.
   * @param {string} path
   * @param {{kind: string, statistic: string}} values
   * @returns {Matrix}
   */
  matrix(path, { kind, statistic }) {
    const block = this.block(path.split("/")[1], kind);
    const cells = block.names.length * block.first.length;
    /** @param {Float32Array} of @param {string} name */
    const part = (of, name) => of.slice(block.statistics.indexOf(name) * cells).subarray(0, cells);
    const exact = block.low === block.high;
    const high = part(block.high, statistic);
    const odd = part(block.high, "non_finite");
    if (statistic !== "non_finite") odd.forEach((count, at) => count > 0 && (high[at] = Infinity));
    const { first, last } = block;
    return {
      rows: block.names.length,
      columns: first.length,
      exact,
      first,
      last,
      low: exact ? high : part(block.low, statistic),
      high,
    };
  }

  /**
   * Every statistic of one tensor over the steps.
   * @param {string} id
   * @param {string} kind
   * @param {string} name
   * @returns {HistoryAnswer}
   */
  history(id, kind, name) {
    const block = this.block(id, kind);
    const row = block.names.indexOf(name);
    if (row < 0) throw missing(`The report has no tensor ${name}.`);
    const columns = block.first.length;
    /** @param {Float32Array} of */
    const parts = (of) =>
      Object.fromEntries(
        block.statistics.map((statistic, at) => {
          const start = (at * block.names.length + row) * columns;
          return [statistic, Array.from(of.subarray(start, start + columns), plain)];
        }),
      );
    const [low, high] = [parts(block.low), parts(block.high)];
    const exact =
      block.first.every((step, at) => step === block.last[at]) &&
      block.statistics.every((statistic) => low[statistic].every((value, at) => value === high[statistic][at]));
    return { name, kind, first: block.first, last: block.last, exact, low, high };
  }

  /**
   * What the last step has of a tensor; of one for which there was no room, only the step.
   * @param {string} id
   * @param {string} kind
   * @param {string} name
   * @returns {AtStepAnswer}
   */
  atStep(id, kind, name) {
    const known = this.answers[`run/${id}/at/${kind}/${name}`];
    if (known) return known;
    const last = this.history(id, kind, name).last.at(-1) ?? 0;
    return { step: last, name, workers: {}, sample: null, values: null };
  }
}

// Refreshing a screen: one refresh at a time, as a late answer must not cover a newer one.

/**
 * Return a function that refreshes; whatever changes while it runs is shown by one more refresh.
 * @param {() => Promise<void>} refresh
 * @param {object} options
 * @param {() => boolean} [options.isClosed] nothing is refreshed once it is
 * @param {(duration: number) => number} [options.pauseAfter] for how many milliseconds one more refresh waits after
 *   one that took so many
 */
export function oneAtATime(refresh, { isClosed = () => false, pauseAfter = (_) => 0 } = {}) {
  let running = null;
  let isWanted = false;

  async function all() {
    let problem = null;
    while (isWanted && !isClosed()) {
      isWanted = false;
      const begun = performance.now();
      problem = await refresh().then(
        () => null,
        (error) => error,
      );
      if (isWanted) await new Promise((resolve) => setTimeout(resolve, pauseAfter(performance.now() - begun)));
    }
    running = null; // before anything else can ask for a refresh
    if (problem) throw problem;
  }

  return () => {
    isWanted = true;
    running ??= all();
    return running;
  };
}

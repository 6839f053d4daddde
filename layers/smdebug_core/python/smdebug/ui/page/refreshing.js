// Refreshing a screen: one refresh at a time, as a late answer must not cover a newer one.

// Return a function that refreshes; whatever changes while it runs is shown by one more refresh. `pauseAfter` says
// for how many milliseconds that waits after a refresh of a given duration. Nothing is refreshed once `isClosed`.
export function oneAtATime(refresh, { isClosed = () => false, pauseAfter = () => 0 } = {}) {
  let running = null;
  let isWanted = false;

  async function all() {
    let problem = null;
    while (isWanted && !isClosed()) {
      isWanted = false;
      const begun = performance.now();
      problem = await refresh().then(() => null, (error) => error);
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

// A page of one line chart for each tensor of a run, by the library that `smdebug ui` draws with, from the data of
// its heat map. All of them follow `show-steps`, as its charts do.
(async () => {
  const uPlot = (await import("./page/vendored/uplot-1.6.32.esm.js")).default;
  const { get, matrix } = await import("./page/api.js");
  const run = RUN;
  const { names } = await get(`run/${run}/rows`, { kind: "gradients" });
  const found = await matrix(`run/${run}/matrix`, { kind: "gradients", statistic: "rms", points: 4096 });
  document.body.replaceChildren();
  const charts = names.map((name, at) => {
    const values = Array.from(found.high.subarray(at * found.columns, (at + 1) * found.columns));
    return new uPlot({
      title: name, width: 400, height: 170, legend: { show: false }, cursor: { show: false },
      scales: { x: { time: false } }, series: [{}, { stroke: "#0550ae", width: 1.4, points: { show: false } }],
    }, [found.first, values], document.body);
  });
  document.addEventListener("show-steps", ({ detail: [min, max] }) => charts.forEach((chart) => chart.setScale("x", { min, max })));
  return charts.length;
})()

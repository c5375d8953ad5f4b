// SPDX-License-Identifier: Apache-2.0
// Two subjects side by side, on the same scales.

const COMPARED = [
  ["limit_bytes", "limit", formatBytes], ["footprint_bytes", "footprint", formatBytes], ["peak_load_planned_bytes", "peak load with the plan", formatBytes],
  ["peak_load_bytes", "peak load without", formatBytes], ["iteration_ns", "iteration, predicted", formatTime], ["iteration_ns_measured", "iteration, measured", formatTime],
  ["overhead", "overhead, predicted", formatPercent], ["overhead_measured", "overhead, measured", formatPercent], ["bound_overhead", "overhead at best", formatPercent],
  ["stall_ns", "stalls", formatTime], ["swapped_bytes", "swapped", formatBytes], ["recomputed_bytes", "recomputed", formatBytes],
  ["host_bytes", "host memory", formatBytes], ["replays", "ops that run again", formatCount], ["copies", "copies", formatCount],
];

function nameOf(subject) {
  const { figures } = subject;
  return [figures.name, figures.planner].filter(Boolean).map((text) => showText(text, 60)).join(", ");
}

function makeCompare(subjects) {
  const [a, b] = subjects;
  const rows = COMPARED.filter(([key]) => a.figures[key] !== null || b.figures[key] !== null).map(([key, title, format]) => {
    const [x, y] = [a.figures[key], b.figures[key]];
    const difference = x === null || y === null ? "" : x === y ? "the same" : (y > x ? "+" : "−") + format(Math.abs(y - x)).replace(" %", " points");
    return [title, x === null ? "–" : format(x), y === null ? "–" : format(y), difference];
  });
  const axis = new TimeAxis(Math.max(a.iteration, b.iteration));
  const most = Math.max(MemoryChart.mostOf(a), MemoryChart.mostOf(b));
  const top = Math.max(...subjects.map((s) => Math.max(s.figures.footprint_bytes, s.figures.limit_bytes !== null && s.figures.limit_bytes < 2 * s.figures.footprint_bytes ? s.figures.limit_bytes : 0)));
  const charts = subjects.map((s) => new MemoryChart(s, axis, { height: 220, most }));
  const maps = subjects.map((s) => new AddressMap(s, axis, { height: 280, most: top, colouring: "decision" }));
  const pair = make("div", { class: "pair" });
  const measured = subjects.some((s) => s.measured);
  for (const k of [0, 1]) pair.append(make("div", {}, make("h3", {}, `${"AB"[k]}: ${nameOf(subjects[k])}${measured ? `, ${timesOf(subjects[k])}` : ""}`), charts[k].root));
  for (const k of [0, 1]) pair.append(make("div", {}, maps[k].root));
  makeSection("compare", "Compare", make("p", { class: "caption" }, "A and B on the same scales; zooming one zooms both. The switch at the top of the page shows the one or the other above."),
    makeTable(["", "A", "B", "B against A"], rows, [1, 2, 3]), pair, mapLegend("decision"));
}

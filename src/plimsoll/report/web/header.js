// SPDX-License-Identifier: Apache-2.0
// The figures at the head of the page: those of --json.

function makeFigures(f) {
  const planned = f.limit_bytes !== null;
  const share = (bytes) => f.peak_load_bytes > 0 ? `${formatPercent(bytes / f.peak_load_bytes)} of the peak load` : "";
  const entries = [
    ["model", f.model === null ? showText(f.name) : showText(f.model), f.model === null ? "the file's name" : `from ${showText(f.name)}`],
    ["device", f.device === null ? "not recorded" : showText(f.device), `link ${showText(f.link)}`],
    planned && ["limit_bytes", formatBytes(f.limit_bytes), share(f.limit_bytes), "limit"],
    ["peak_load_bytes", formatBytes(f.peak_load_bytes), `placed in ${formatBytes(f.footprint_unlimited_bytes)}`, "peak load without a plan"],
    planned && ["peak_load_planned_bytes", formatBytes(f.peak_load_planned_bytes), `placed in ${formatBytes(f.footprint_bytes)}`, "peak load with the plan"],
    ["iteration_ns_unlimited", formatTime(f.iteration_ns_unlimited), "the sum of its ops", "iteration without a limit"],
    planned && ["overhead", formatPercent(f.overhead), `${formatTime(f.iteration_ns)} an iteration`, "overhead, predicted"],
    f.overhead_measured !== null && ["overhead_measured", formatPercent(f.overhead_measured), `${formatTime(f.iteration_ns_measured)} an iteration`, "overhead, measured"],
    planned && ["bound_overhead", formatPercent(f.bound_overhead), `the plan is ${(100 * f.gap).toFixed(1)} points above`, "overhead at best (bound)"],
    planned && ["planner", showText(f.planner), f.planning_seconds === null ? "planning time not recorded" : `planned in ${f.planning_seconds.toFixed(2)} s`],
    planned && ["swapped_bytes", formatBytes(f.swapped_bytes), `${formatCount(f.copies)} copies, ${formatBytes(f.host_bytes)} of host memory`, "swapped"],
    planned && ["recomputed_bytes", formatBytes(f.recomputed_bytes), `${formatCount(f.replays)} ops run again`, "recomputed"],
    planned && ["stall_ns", formatTime(f.stall_ns), "in which no op runs", "stalls, predicted"],
    ["variables", formatCount(f.variables), `${formatCount(f.ops)} ops, ${formatCount(f.residencies)} residencies`],
  ];
  const list = make("dl", { class: "figures" });
  for (const entry of entries.filter(Boolean)) {
    const [key, value, note, title] = entry;
    list.append(make("div", {}, make("dt", {}, title || key), make("dd", { "data-figure": key }, value, make("small", {}, note))));
  }
  const notes = f.iterations_together > 1
    ? [make("p", { class: "note" }, `Variables outlive their iteration: ${f.iterations_together} iterations are planned and drawn together. Figures are of one.`)] : [];
  return [list, ...notes];
}

function makeThemeSwitch() {
  const button = make("button", { type: "button", id: "theme", onclick: () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark") }, "");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const setTheme = (theme) => {
    document.documentElement.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to ${theme === "dark" ? "light" : "dark"} colours`);
    colours.cache.clear();
    for (const repaint of repaints) repaint();
  };
  dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
  // Printed pages are light.
  let before = null;
  addEventListener("beforeprint", () => { before = document.documentElement.dataset.theme; setTheme("light"); });
  addEventListener("afterprint", () => { if (before) setTheme(before); });
  setTheme(dark.matches ? "dark" : "light");
  return button;
}

// SPDX-License-Identifier: Apache-2.0

/** In which times memory is drawn. */
function timesOf(s) { return s.measured ? "at measured times" : "at predicted times"; }

/** All sections about one subject. */
function showSubject(s, curve) {
  makeSection("figures-section", "In figures", ...makeFigures(s.figures));
  const axis = new TimeAxis(Math.max(s.iteration, s.predicted.iteration));
  // What was predicted to last more than twice as long would leave no room for what was measured.
  const cut = s.iteration < axis.length / 2;
  if (cut) axis.show(0, s.iteration);

  const memory = new MemoryChart(s, axis);
  makeSection("memory", "Memory over time", make("p", { class: "caption" },
    `What is on the device over an iteration, ${timesOf(s)}; the load without a plan is drawn where the plan runs the same ops. A column of pixels shows the highest value in it. Point at a moment to see the op and the largest variables.`),
  makeHint(false), memory.root, memoryLegend(s), makeAlternative(() => memoryAsText(s)));

  const map = makeMapSection(s, axis);

  const lanes = new LanesChart(s, axis);
  makeSection("lanes", "Queues", make("p", { class: "caption" },
    `${s.measured ? "Predicted above measured. " : "As predicted. "}${cut ? `What was predicted goes on to ${formatTime(axis.length)}: double click shows all. ` : ""}Commands narrower than two pixels are drawn together: the height of a column is the share of its time in which the queue is busy. A tick above the lane marks short stalls. Point at a command to see what it waits for.`),
  lanes.root, lanesLegend(s), makeAlternative(() => lanesAsText(s)));

  const table = new DecisionTable(s, (variable) => {
    document.getElementById("map").scrollIntoView({ block: "start" });
    map.root.focus({ preventScroll: true });
    map.showVariable(variable);
  });
  makeSection("decisions", "Decisions", make("p", { class: "caption" },
    "Every variable: the longest stretch between two of its uses, what the plan does with it, what that costs in copies or in ops that run again, and why. Click a row to see it in the address map."), table.root);

  if (curve) {
    const chart = new CurveChart(curve, s.figures);
    makeSection("curve-section", "What limits cost", make("p", { class: "caption" },
      "Overhead over the iteration without a limit, for several planners and limits. The axis is about linear up to 1 % and logarithmic above."),
    chart.root, curveLegend(curve), makeAlternative(() => curveAsText(curve, s.figures)));
  }
}

function makeMapSection(s, axis) {
  const map = new AddressMap(s, axis, { colouring: s.planned ? "decision" : "kind" });
  const legend = make("div", {});
  const buttons = ["kind", "decision"].map((way) => make("button", { type: "button", "data-colouring": way, onclick: () => colour(way) }, way));
  const colour = (way) => {
    map.colouring = way;
    buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.colouring === way)));
    legend.replaceChildren(mapLegend(way));
    map.redraw();
  };
  const count = make("span", { class: "count", role: "status", id: "map-count" });
  const search = make("input", { type: "search", id: "map-search", placeholder: "op, number, kind or decision", "aria-label": "Search the address map",
    oninput: (event) => {
      const found = map.search(event.target.value);
      count.textContent = found === null ? "" : `${formatCount(found)} variables found`;
    } });
  makeSection("map", "Address map", make("p", { class: "caption" },
    `Time across, addresses up, ${timesOf(s)}: a rectangle for each of the ${formatCount(s.rectangles.count)} residencies, ${s.planned ? "from the first to the last command that touches it" : "from malloc to free"}. All of them are drawn: what is smaller than a pixel is mixed into it, the smaller its share the paler.`),
  makeHint(true),
  make("div", { class: "tools" }, make("label", {}, "search", search), count, make("span", { class: "count" }, "colour by"), ...buttons,
    make("button", { type: "button", id: "map-reset", onclick: () => axis.reset(map) }, "show all")),
  map.root, legend, makeAlternative(() => mapAsText(s)));
  colour(map.colouring);
  return map;
}

function makeNavigation() {
  document.getElementById("sections").replaceChildren(...[...document.querySelectorAll("main > section")].map((section) =>
    make("a", { href: `#${section.id}` }, section.querySelector("h2").textContent)));
}

async function main() {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const curve = JSON.parse(document.getElementById("curve").textContent);
  const switches = document.getElementById("switches");
  switches.append(makeThemeSwitch());
  const subjects = await Promise.all(figures.map((f, k) => readSubject(document.getElementById(`data-${k}`), f)));
  const buttons = subjects.length < 2 ? [] : subjects.map((s, k) => make("button", { type: "button", id: `subject-${k}`, onclick: () => show(k) }, `${"AB"[k]}: ${nameOf(s)}`));
  const show = (k) => {
    repaints.length = 0;
    document.getElementById("main").replaceChildren();
    document.getElementById("headline").textContent = keepUnits(figures[k].headline);
    buttons.forEach((button, b) => button.setAttribute("aria-pressed", String(b === k)));
    showSubject(subjects[k], k === 0 ? curve : null);
    if (subjects.length > 1) makeCompare(subjects);
    makeNavigation();
  };
  switches.prepend(...buttons);
  show(0);
  document.documentElement.dataset.ready = "true";
}

main().catch((error) => {
  document.getElementById("main").replaceChildren(make("section", {}, make("p", {}, `This report cannot be shown: ${error.message}. It needs a browser of 2023 or later.`)));
  throw error;
});

// SPDX-License-Identifier: Apache-2.0
// Load over time without and with the plan, the arena's use, and the limit: the Plimsoll line.

/** The place of the last step at or before a moment. */
function stepAt(times, time) { return Math.max(0, d3.bisectRight(times, time) - 1); }

/** Returns the highest value of a series of steps in each column of pixels. */
function highestByColumn(times, values, scale, width, end) {
  const highest = new Float64Array(width).fill(NaN);
  const from = scale.invert(0);
  const to = Math.min(scale.invert(width), end);
  if (times.length === 0) return highest;
  const left = scale(0);
  const perNs = (scale(end) - left) / end;
  for (let k = stepAt(times, from); k < times.length && times[k] <= to; ++k) {
    const last = Math.min(k + 1 < times.length ? times[k + 1] : end, to);
    const x0 = Math.max(0, Math.floor(left + times[k] * perNs));
    const x1 = Math.min(width - 1, Math.ceil(left + last * perNs) - 1);
    for (let x = x0; x <= Math.max(x0, x1) && x < width; ++x) {
      if (!(highest[x] >= values[k])) highest[x] = values[k];
    }
  }
  return highest;
}

class MemoryChart extends Plot {
  constructor(subject, axis, { height = 300, most = null } = {}) {
    super(height, "Memory over time");
    this.subject = subject;
    this.axis = axis;
    const c = subject.columns;
    this.most = most || MemoryChart.mostOf(subject);
    this.series = [
      { name: "with", times: c["step.time"], values: c["step.load"] },
      { name: "top", times: c["step.time"], values: c["step.top"] },
      { name: "without", times: c["without.time"], values: c["without.load"] },
    ];
    this.over.addEventListener("pointermove", (event) => this.hover(event));
    this.over.addEventListener("pointerleave", () => { this.axis.cursor = null; tip.hide(); this.axis.plots.forEach((p) => p.drawOver()); });
    axis.add(this);
  }

  static mostOf(subject) {
    const f = subject.figures;
    return Math.max(f.peak_load_bytes, f.footprint_bytes, f.limit_bytes && f.limit_bytes < 2 * f.peak_load_bytes ? f.limit_bytes : 0) * 1.06;
  }

  draw() {
    const context = this.context(this.base);
    const across = this.axis.scale(this.width);
    const up = d3.scaleLinear().domain([0, this.most]).range([this.plotHeight, 0]);
    this.drawTimeAxis(across);
    this.drawByteAxis(up);
    const end = this.subject.iteration;
    for (const { name, times, values } of this.series) {
      const highest = highestByColumn(times, values, across, this.width, end);
      if (name === "with") this.drawArea(context, highest, up);
      else this.drawLine(context, highest, up, name === "top" ? "top" : "without", name === "top" ? [2, 3] : [7, 3]);
    }
    this.drawLimit(context, up);
  }

  drawArea(context, highest, up) {
    context.fillStyle = colours.get("with");
    for (let x = 0; x < this.width; ++x) {
      if (highest[x] > 0) context.fillRect(x, up(highest[x]), 1, this.plotHeight - up(highest[x]));
    }
    this.drawLine(context, highest, up, "with-edge", []);
  }

  drawLine(context, highest, up, colour, dash) {
    context.strokeStyle = colours.get(colour);
    context.lineWidth = 1.5;
    context.setLineDash(dash);
    context.beginPath();
    let drawing = false;
    for (let x = 0; x < this.width; ++x) {
      if (Number.isNaN(highest[x])) { drawing = false; continue; }
      const y = up(highest[x]);
      if (drawing) { context.lineTo(x, y); } else { context.moveTo(x, y); drawing = true; }
      context.lineTo(x + 1, y);
    }
    context.stroke();
    context.setLineDash([]);
  }

  /** The line, with the mark that ships have, and what it says. */
  drawLimit(context, up) {
    const limit = this.subject.figures.limit_bytes;
    if (limit === null || limit > this.most) return;
    const y = up(limit);
    context.strokeStyle = colours.get("limit");
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(0, y);
    context.lineTo(this.width, y);
    context.stroke();
    context.beginPath();
    context.arc(this.width - 16, y, 7, 0, 2 * Math.PI);
    context.stroke();
    const text = `limit ${formatBytes(limit)}`;
    context.font = "600 12px system-ui, sans-serif";
    const width = context.measureText(text).width;
    const above = y > 24;
    context.fillStyle = colours.get("card");
    context.globalAlpha = 0.85;
    context.fillRect(this.width - 34 - width, above ? y - 20 : y + 4, width + 8, 16);
    context.globalAlpha = 1;
    context.fillStyle = colours.get("limit");
    context.fillText(text, this.width - 30 - width, above ? y - 8 : y + 16);
  }

  drawOver() {
    if (this.width === 0) return;
    const context = this.context(this.over);
    drawCursor(context, this.axis, this.width, this.plotHeight);
  }

  hover(event) {
    const x = event.offsetX;
    this.showAt(this.axis.scale(this.width).invert(x), event.clientX, event.clientY);
  }

  /** Moves to the next op, or the one before, by keyboard. */
  step(by) {
    const s = this.subject;
    const scale = this.axis.scale(this.width);
    const now = this.axis.cursor === null ? scale.invert(0) : this.axis.cursor;
    const place = Math.max(0, Math.min(s.queues[0].length - 1, s.placeAt(now) + (this.axis.cursor === null ? 0 : by)));
    const command = s.queues[0][place];
    const time = (s.drawn.start[command] + s.drawn.end[command]) / 2;
    const box = this.over.getBoundingClientRect();
    this.showAt(time, box.left + Math.max(0, Math.min(this.width, scale(time))), box.top + 40);
  }

  showAt(time, clientX, clientY) {
    const s = this.subject;
    if (time < 0 || time > s.iteration) return tip.hide();
    this.axis.cursor = time;
    this.axis.plots.forEach((p) => p.drawOver());
    tip.show(clientX, clientY, describeMoment(s, time));
  }
}

/** What runs and what is there at a moment. */
function describeMoment(s, time) {
  const c = s.columns;
  const command = s.queues[0][s.placeAt(time)];
  const waits = time < s.drawn.start[command];
  const k = stepAt(c["step.time"], time);
  const present = s.presentAt(time, 5);
  return [
    `${waits ? "waiting for " : ""}${s.describeCommand(command)}`,
    `at ${formatTime(time)}, ${PHASES[c["op.phase"][c["command.target"][command]]]}`,
    ["load without a plan", formatBytes(c["without.load"][stepAt(c["without.time"], time)])],
    [s.planned ? "load with it" : "load in the arena", formatBytes(c["step.load"][k])],
    ["highest address in use", formatBytes(c["step.top"][k])],
    `${formatCount(present.count)} variables; the largest:`,
    ...present.largest.map((r) => {
      const v = s.rectangles.variable[r];
      return [s.describeVariable(v), `${KINDS[c["variable.kind"][v]]}, ${formatBytes(c["variable.size"][v])}`];
    }),
  ];
}

function drawCursor(context, axis, width, height) {
  if (axis.cursor === null) return;
  const x = axis.scale(width)(axis.cursor);
  context.strokeStyle = colours.get("text");
  context.globalAlpha = 0.6;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x, 0);
  context.lineTo(x, height);
  context.stroke();
  context.globalAlpha = 1;
}

function memoryLegend(subject) {
  const entries = [[makeStroke("without", "7 3"), subject.planned ? "load without a plan" : "load as recorded"],
    [makeSwatch("with", 0), subject.planned ? "load with the plan" : "load in the arena"],
    [makeStroke("top", "2 3"), "the arena's use: highest address taken"]];
  if (subject.planned) entries.push([makeStroke("limit", "", 2.5), "the limit: the Plimsoll line"]);
  return makeLegend(...entries);
}

/** The chart in twenty stretches. */
function memoryAsText(s) {
  const c = s.columns;
  const scale = d3.scaleLinear().domain([0, s.iteration]).range([0, 20]);
  const series = [["without.time", "without.load"], ["step.time", "step.load"], ["step.time", "step.top"]]
    .map(([times, values]) => highestByColumn(c[times], c[values], scale, 20, s.iteration));
  const rows = d3.range(20).map((k) => [formatTime(scale.invert(k)), ...series.map((values) => formatBytes(values[k] || 0))]);
  return make("div", {}, make("p", { class: "note" }, "The highest of each twentieth of the iteration."),
    makeTable(["from", "load without", "load with", "arena's use"], rows, [0, 1, 2, 3]));
}

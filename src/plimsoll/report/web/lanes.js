// SPDX-License-Identifier: Apache-2.0
// The three queues over time, predicted above measured, with what the ops wait for.

const LANE = 30;
const LANE_GAP = 8;

class LanesChart extends Plot {
  constructor(subject, axis) {
    const sets = [["predicted", subject.predicted]];
    if (subject.measured) sets.push(["measured", subject.measured]);
    super(sets.length * (3 * (LANE + LANE_GAP) + 26) + 34, "Queues over time");
    this.subject = subject;
    this.axis = axis;
    this.rows = [];
    let y = 22;
    for (const [name, lanes] of sets) {
      for (let queue = 0; queue < 3; ++queue) {
        this.rows.push({ set: name, lanes, queue, y });
        y += LANE + LANE_GAP;
      }
      y += 26;
    }
    this.current = null;
    this.over.addEventListener("pointermove", (event) => this.hover(event));
    this.over.addEventListener("pointerleave", () => { this.clear(); tip.hide(); });
    axis.add(this);
  }

  draw() {
    const context = this.context(this.base);
    const scale = this.axis.scale(this.width);
    this.drawTimeAxis(scale);
    this.drawLabels();
    for (const row of this.rows) {
      context.strokeStyle = colours.get("line");
      context.lineWidth = 1;
      context.strokeRect(0, row.y + 0.5, this.width, LANE - 1);
      this.drawCommands(context, row, scale);
      if (row.queue === 0) this.drawStalls(context, row, scale);
    }
  }

  drawLabels() {
    const labels = this.marks.selectAll("text").data(this.rows.flatMap((row) => [
      { text: QUEUES[row.queue], y: row.y + LANE / 2 + 4, x: -10, anchor: "end" },
      ...(row.queue === 0 ? [{ text: row.set, y: row.y - 7, x: 0, anchor: "start", bold: true }] : []),
    ]));
    labels.enter().append("text").merge(labels).attr("x", (d) => d.x).attr("y", (d) => d.y)
      .attr("text-anchor", (d) => d.anchor).style("font-weight", (d) => d.bold ? 600 : 400).text((d) => d.text);
  }

  /** Commands that have room are drawn one by one; of the others, how busy each column is. */
  drawCommands(context, row, scale) {
    const s = this.subject;
    const { lanes, queue, y } = row;
    const fill = [colours.get("persistent"), colours.get("activation"), colours.get("gradient")][queue];
    const again = colours.get("recomputed");
    const busy = new Float64Array(this.width);
    const busyAgain = new Float64Array(this.width);
    const [from, to] = [scale.invert(0), scale.invert(this.width)];
    const left = scale(0);
    const perNs = this.width / (to - from);
    const replayed = s.columns["op.replay"];
    const target = s.columns["command.target"];
    const visit = (c, shift) => {
      const start = lanes.start[c] + shift;
      const end = lanes.end[c] + shift;
      if (end <= from || start >= to || end <= 0 || start >= lanes.iteration) return;
      const x0 = Math.max(0, left + Math.max(0, start) * perNs);
      const x1 = Math.min(this.width, left + Math.min(end, lanes.iteration) * perNs);
      const replay = queue === 0 && replayed[target[c]];
      if (x1 - x0 < 2) {
        for (let x = Math.floor(x0); x <= Math.min(this.width - 1, Math.floor(x1)); ++x) {
          (replay ? busyAgain : busy)[x] += Math.max(0, Math.min(x + 1, x1) - Math.max(x, x0));
        }
        return;
      }
      context.fillStyle = replay ? again : fill;
      context.fillRect(x0, y + 1, x1 - x0, LANE - 2);
      context.fillStyle = colours.get("card");
      context.fillRect(x1 - 0.5, y + 1, 0.5, LANE - 2);
      if (x1 - x0 > 46) this.drawName(context, c, replay, x0, x1, y);
    };
    for (const c of s.queues[queue]) {
      visit(c, 0);
      if (lanes.end[c] > lanes.iteration) visit(c, -lanes.iteration);
      if (lanes.start[c] < 0) visit(c, lanes.iteration);
    }
    // Ops that run again are stacked on those that run for the first time.
    const below = new Float64Array(this.width);
    for (const [share, colour] of [[busy, fill], [busyAgain, again]]) {
      context.fillStyle = colour;
      for (let x = 0; x < this.width; ++x) {
        const height = Math.min(1 - below[x], share[x]) * (LANE - 2);
        if (height > 0.1) context.fillRect(x, y + LANE - 1 - below[x] * (LANE - 2) - height, 1, height);
        below[x] = Math.min(1, below[x] + share[x]);
      }
    }
  }

  drawName(context, c, replay, x0, x1, y) {
    const s = this.subject;
    const target = s.columns["command.target"][c];
    const name = s.columns["command.queue"][c] === 0 ? showText(s.opName(target), 40) : `v${s.columns["variable.id"][s.rectangles.variable[target]]}`;
    context.fillStyle = document.documentElement.dataset.theme === "dark" ? "#fff" : "#10202f";
    context.font = "12px system-ui, sans-serif";
    const text = fitText(context, (replay ? "↻ " : "") + name, x1 - x0 - 10);
    if (text) context.fillText(text, x0 + 5, y + LANE / 2 + 4);
  }

  drawStalls(context, row, scale) {
    const narrow = new Float64Array(this.width);
    const left = scale(0);
    const perNs = (scale(row.lanes.iteration) - left) / Math.max(1, row.lanes.iteration);
    for (const stall of row.lanes.stalls) {
      const x0 = left + Math.max(0, stall.start) * perNs;
      const x1 = left + Math.min(row.lanes.iteration, stall.start + stall.length) * perNs;
      if (x1 < 0 || x0 > this.width) continue;
      if (x1 - x0 < 2) {
        const x = Math.floor(Math.max(0, x0));
        if (x < this.width) narrow[x] += x1 - x0;
        continue;
      }
      this.drawStall(context, Math.max(0, x0), Math.min(this.width, x1), row.y, stall.reason);
    }
    // Those without room: a tick above the lane where they take a tenth of a pixel's time.
    context.fillStyle = colours.get("stall");
    for (let x = 0; x < this.width; ++x) if (narrow[x] > 0.1) context.fillRect(x, row.y - 5, 1, 4);
  }

  drawStall(context, x0, x1, y, reason) {
    context.fillStyle = colours.get("stall-fill");
    context.fillRect(x0, y + 1, x1 - x0, LANE - 2);
    if (x1 - x0 < 14) {
      // There may be thousands of these, and no room for more than a bar above each.
      context.fillStyle = colours.get("stall");
      context.fillRect(x0, y + 1, x1 - x0, 3);
      return;
    }
    context.save();
    context.beginPath();
    context.rect(x0, y + 1, x1 - x0, LANE - 2);
    context.clip();
    context.strokeStyle = colours.get("stall");
    context.lineWidth = 1;
    context.beginPath();
    for (let x = x0 - LANE; x < x1; x += 6) { context.moveTo(x, y + LANE); context.lineTo(x + LANE, y); }
    context.globalAlpha = 0.55;
    context.stroke();
    context.globalAlpha = 1;
    const middle = (x0 + x1) / 2;
    context.fillStyle = colours.get("stall-fill");
    context.fillRect(middle - 6, y + 7, 12, 16);
    context.fillStyle = colours.get("stall");
    context.font = "700 12px system-ui, sans-serif";
    context.textAlign = "center";
    context.fillText(STALL_LETTERS[reason], middle, y + LANE / 2 + 5);
    context.restore();
    context.textAlign = "start";
  }

  /** The stall or the command at a point. */
  find(x, y) {
    const row = this.rows.find((r) => y >= r.y - 6 && y <= r.y + LANE);
    if (!row) return null;
    const scale = this.axis.scale(this.width);
    const time = scale.invert(x);
    const reach = (scale.invert(x + 2) - time);
    const s = this.subject;
    if (row.queue === 0) {
      const stall = row.lanes.stalls.find((t) => time >= t.start && time < t.start + t.length);
      if (stall) return { row, stall, command: stall.command };
    }
    let best = null;
    for (const c of s.queues[row.queue]) {
      for (const shift of [0, -row.lanes.iteration, row.lanes.iteration]) {
        const start = row.lanes.start[c] + shift;
        const end = row.lanes.end[c] + shift;
        const away = time < start ? start - time : time > end ? time - end : 0;
        if (away <= reach && (best === null || away < best.away)) best = { row, command: c, away };
      }
    }
    return best;
  }

  hover(event) {
    if (event.buttons) return tip.hide();
    this.axis.cursor = this.axis.scale(this.width).invert(event.offsetX);
    this.current = this.find(event.offsetX, event.offsetY);
    this.axis.plots.forEach((p) => p.drawOver());
    if (this.current) tip.show(event.clientX, event.clientY, this.describe(this.current)); else tip.hide();
  }

  clear() { this.current = null; this.axis.cursor = null; this.axis.plots.forEach((p) => p.drawOver()); }

  step(by) {
    const s = this.subject;
    const row = this.current ? this.current.row : this.rows[0];
    const queue = s.queues[row.queue];
    if (queue.length === 0) return;
    const place = this.current ? s.place[this.current.command] + by : s.placeAt(this.axis.scale(this.width).invert(0), row.lanes);
    const command = queue[Math.max(0, Math.min(queue.length - 1, place))];
    this.current = { row, command };
    this.drawOver();
    const box = this.over.getBoundingClientRect();
    tip.show(box.left + 60, box.top + row.y + LANE, this.describe(this.current));
  }

  describe({ row, command, stall }) {
    const s = this.subject;
    const lines = [];
    if (stall) {
      lines.push(`${STALL_REASONS[stall.reason]}: ${formatTime(stall.length)}`, `${s.describeCommand(stall.command)} has to wait`);
      if (stall.awaited >= 0) lines.push(["for", s.describeCommand(stall.awaited)], ...whyLate(s, row.lanes, stall.awaited));
      return lines;
    }
    lines.push(s.describeCommand(command), `${QUEUES[row.queue]}, ${row.set}`);
    lines.push(["from", formatTime(row.lanes.start[command])], ["takes", formatTime(row.lanes.end[command] - row.lanes.start[command])]);
    if (s.measured) {
      const other = row.lanes === s.measured ? s.predicted : s.measured;
      lines.push([row.lanes === s.measured ? "predicted" : "measured", formatTime(other.end[command] - other.start[command])]);
    }
    const waits = s.waitsOf(command);
    for (const wait of waits.slice(0, 6)) lines.push(["waits for", s.describeCommand(wait.command) + (wait.lag ? " of the iteration before" : "")]);
    if (waits.length > 6) lines.push(["", `and ${waits.length - 6} more`]);
    return lines;
  }

  drawOver() {
    if (this.width === 0) return;
    const context = this.context(this.over);
    drawCursor(context, this.axis, this.width, this.plotHeight);
    if (!this.current) return;
    const { row, command } = this.current;
    const scale = this.axis.scale(this.width);
    this.outline(context, row, command, scale, 2);
    for (const wait of this.subject.waitsOf(command)) this.drawEdge(context, row, wait, command, scale);
  }

  rowOf(set, command) { return this.rows.find((r) => r.set === set && r.queue === this.subject.columns["command.queue"][command]); }

  outline(context, row, command, scale, width) {
    context.strokeStyle = colours.get("text");
    context.lineWidth = width;
    const x = scale(row.lanes.start[command]);
    context.strokeRect(x, row.y, Math.max(2, scale(row.lanes.end[command]) - x), LANE);
  }

  /** A curve from the end of what is awaited to the beginning of who waits. */
  drawEdge(context, row, wait, command, scale) {
    const other = this.rowOf(row.set, wait.command);
    const x0 = scale(row.lanes.end[wait.command] - wait.lag * row.lanes.iteration);
    const x1 = scale(row.lanes.start[command]);
    const y0 = other.y + LANE / 2;
    const y1 = row.y + LANE / 2;
    const middle = (x0 + x1) / 2;
    context.strokeStyle = colours.get("accent");
    context.lineWidth = 1.6;
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo(middle, y0, middle, y1, x1, y1);
    context.stroke();
    context.fillStyle = colours.get("accent");
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x1 - 7, y1 - 4);
    context.lineTo(x1 - 7, y1 + 4);
    context.fill();
    if (wait.lag === 0) this.outline(context, other, wait.command, scale, 1);
  }
}

/** As much of a text as has room, and that it is cut; nothing where that says too little. */
function fitText(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let length = Math.floor(text.length * room / context.measureText(text).width);
  while (length > 4 && context.measureText(`${text.slice(0, length)}…`).width > room) --length;
  return length > 4 ? `${text.slice(0, length)}…` : "";
}

/** Why a copy did not end earlier: because it waited itself, or because of the copies before it. */
function whyLate(s, lanes, command) {
  const queue = s.columns["command.queue"][command];
  const before = s.place[command] > 0 ? s.queues[queue][s.place[command] - 1] : -1;
  let latest = -Infinity;
  let awaited = -1;
  for (const wait of s.waitsOf(command)) {
    const end = lanes.end[wait.command] - wait.lag * lanes.iteration;
    if (end > latest) { latest = end; awaited = wait.command; }
  }
  if (queue !== 0 && before >= 0 && lanes.end[before] > latest) return [["which came", `behind other copies: the link was busy with ${s.describeCommand(before)}`]];
  if (queue === 2 && awaited >= 0) return [["which waited", `for memory: until ${s.describeCommand(awaited)} had ended`]];
  if (awaited >= 0) return [["which waited", `until ${s.describeCommand(awaited)} had ended`]];
  return [];
}

function lanesLegend(subject) {
  const entries = [[makeSwatch("persistent", 0), "ops"], [makeSwatch("activation", 0), "copies out"], [makeSwatch("gradient", 0), "copies in"]];
  if (subject.figures.replays > 0) entries.splice(1, 0, [makeSwatch("recomputed", 0), "↻ ops that run again"]);
  const letter = (text) => make("b", { style: "color:var(--stall)" }, text);
  entries.push([makeSwatch("stall-fill", 1), "stall:"], [letter("D"), "waits for data to come back"], [letter("M"), "waits for memory to be freed"]);
  const unnamed = (lanes) => lanes !== null && lanes.stalls.some((stall) => stall.reason === 2);
  if (unnamed(subject.predicted) || unnamed(subject.measured)) entries.push([letter("?"), "waits for nothing that the plan names"]);
  return makeLegend(...entries);
}

function lanesAsText(s) {
  const block = make("div");
  for (const [name, lanes] of [["predicted", s.predicted], ["measured", s.measured]]) {
    if (!lanes) continue;
    const busy = QUEUES.map((queue, q) => [queue, formatCount(s.queues[q].length), formatTime(d3.sum(s.queues[q], (c) => lanes.end[c] - lanes.start[c]))]);
    block.append(make("p", { class: "note" }, `${name}: an iteration of ${formatTime(lanes.iteration)}`), makeTable(["queue", "commands", "busy"], busy, [1, 2]));
    const longest = lanes.stalls.slice().sort((a, b) => b.length - a.length).slice(0, 10);
    if (longest.length === 0) continue;
    block.append(make("p", { class: "note" }, "The longest stalls:"), makeTable(["at", "length", "op", "reason", "for"], longest.map((stall) =>
      [formatTime(stall.start), formatTime(stall.length), s.describeCommand(stall.command), STALL_REASONS[stall.reason], stall.awaited < 0 ? "" : s.describeCommand(stall.awaited)]), [0, 1]));
  }
  return block;
}

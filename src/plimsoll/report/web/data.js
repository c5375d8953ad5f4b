// SPDX-License-Identifier: Apache-2.0
// What the page carries: src/plimsoll/report/columns.h and page_data.cc write it.

/** Reads a column of differences: seven bits a byte, the lowest first, the sign in the lowest. */
function readColumn(bytes, at, count) {
  const values = new Float64Array(count);
  let last = 0;
  for (let k = 0; k < count; ++k) {
    let number = 0;
    let factor = 1;
    let byte;
    do {
      byte = bytes[at++];
      number += (byte & 127) * factor;
      factor *= 128;
    } while (byte > 127);
    // Beyond 2^53, numbers are rounded: 9 PB, or a hundred days in nanoseconds.
    last += number % 2 === 1 ? -(number + 1) / 2 : number / 2;
    values[k] = last;
  }
  return { values, at };
}

async function inflate(element) {
  const text = atob(element.textContent);
  const bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; ++k) bytes[k] = text.charCodeAt(k);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The three queues over an iteration, by command. */
function readLanes(columns, prefix, queues) {
  if (!columns[prefix + ".iteration"]) return null;
  const count = columns["command.queue"].length;
  const lanes = { iteration: columns[prefix + ".iteration"][0], start: new Float64Array(count), end: new Float64Array(count), stalls: [] };
  let k = 0;
  for (const queue of queues) {
    for (const c of queue) {
      lanes.start[c] = columns[prefix + ".start"][k];
      lanes.end[c] = lanes.start[c] + columns[prefix + ".length"][k];
      ++k;
    }
  }
  const stall = (name) => columns[prefix + ".stall." + name];
  for (let s = 0; s < stall("start").length; ++s) {
    lanes.stalls.push({ command: stall("command")[s], awaited: stall("awaited")[s], start: stall("start")[s], length: stall("length")[s], reason: stall("reason")[s] });
  }
  lanes.stalls.sort((a, b) => a.start - b.start);
  return lanes;
}

async function readSubject(element, figures) {
  const bytes = await inflate(element);
  const end = bytes.indexOf(10);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end)));
  const columns = {};
  let at = end + 1;
  for (const [name, count] of head.columns) {
    const column = readColumn(bytes, at, count);
    columns[name] = column.values;
    at = column.at;
  }
  return new Subject(figures, head.names, columns);
}

/** A trace, a plan or a run, with what is derived from it. */
class Subject {
  constructor(figures, names, columns) {
    this.figures = figures;
    this.names = names;
    this.columns = columns;
    this.planned = figures.limit_bytes !== null;
    this.queues = [0, 1, 2].map((q) => columns["queue." + q]);
    this.predicted = readLanes(columns, "predicted", this.queues);
    this.measured = readLanes(columns, "measured", this.queues);
    this.drawn = this.measured || this.predicted;  // The times of the memory chart and the address map.
    this.iteration = this.drawn.iteration;
    this.makeRectangles();
    this.makeWaits();
  }

  makeRectangles() {
    const c = this.columns;
    const count = c["rectangle.begin"].length;
    this.rectangles = { count, variable: c["rectangle.variable"], begin: c["rectangle.begin"], end: new Float64Array(count), low: c["rectangle.offset"], high: new Float64Array(count) };
    const choiceOf = new Uint8Array(c["variable.source"].length ? d3.max(c["variable.source"]) + 1 : 0);
    c["decision.choice"].forEach((choice, v) => { choiceOf[v] = choice; });
    this.choice = Uint8Array.from(c["variable.source"], (v) => choiceOf[v]);
    for (let r = 0; r < count; ++r) {
      this.rectangles.end[r] = this.rectangles.begin[r] + c["rectangle.length"][r];
      this.rectangles.high[r] = this.rectangles.low[r] + c["variable.size"][this.rectangles.variable[r]];
    }
  }

  makeWaits() {
    const counts = this.columns["command.waits"];
    this.firstWait = new Float64Array(counts.length + 1);
    for (let c = 0; c < counts.length; ++c) this.firstWait[c + 1] = this.firstWait[c] + counts[c];
    this.place = new Float64Array(counts.length);
    for (const queue of this.queues) queue.forEach((c, k) => { this.place[c] = k; });
  }

  waitsOf(command) {
    const waits = [];
    for (let k = this.firstWait[command]; k < this.firstWait[command + 1]; ++k) {
      waits.push({ command: this.columns["wait.command"][k], lag: this.columns["wait.lag"][k] });
    }
    return waits;
  }

  opName(op) { return this.names[this.columns["op.name"][op]]; }

  describeOp(op) {
    const again = this.columns["op.replay"][op] ? " runs again" : "";
    return `op ${this.columns["op.source"][op]} ${showText(this.opName(op))}${again}`;
  }

  describeVariable(v) {
    const maker = this.columns["variable.maker"][v];
    const by = maker < 0 ? "" : ` of ${showText(this.opName(maker))}`;
    return `variable ${this.columns["variable.id"][v]}${by}`;
  }

  describeCommand(command) {
    const queue = this.columns["command.queue"][command];
    const target = this.columns["command.target"][command];
    if (queue === 0) return this.describeOp(target);
    const v = this.rectangles.variable[target];
    return `${QUEUES[queue]} of ${this.describeVariable(v)}, ${formatBytes(this.columns["variable.size"][v])}`;
  }

  /** The op that runs at a moment, or the next one, as a place in the compute queue. */
  placeAt(time, lanes = this.drawn) {
    const queue = this.queues[0];
    let low = 0;
    let high = queue.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (lanes.end[queue[middle]] > time) high = middle; else low = middle + 1;
    }
    return low;
  }

  /** What is on the device at a moment, the largest first. */
  presentAt(time, most) {
    const r = this.rectangles;
    const found = [];
    for (let k = 0; k < r.count; ++k) {
      const inside = (time >= r.begin[k] && time < r.end[k]) || time + this.iteration < r.end[k];
      if (inside) found.push(k);
    }
    found.sort((a, b) => (r.high[b] - r.low[b]) - (r.high[a] - r.low[a]));
    return { count: found.length, largest: found.slice(0, most) };
  }
}

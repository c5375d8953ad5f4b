// SPDX-License-Identifier: Apache-2.0
// Time across, addresses up, a rectangle for each residency: figure 3 of paper 001, alive. Pixels
// are set by hand: that takes a few milliseconds for a hundred thousand rectangles, on any machine.

const COLOURINGS = {
  kind: { names: KINDS, colours: KINDS, patterns: [0, 1, 2, 3, 4], of: (s, v) => s.columns["variable.kind"][v] },
  decision: { names: ["kept", "swapped", "recomputed", "swapped and recomputed"], colours: CHOICES, patterns: [0, 1, 2, 5], of: (s, v) => s.choice[v] },
};

/** What is smaller than a pixel is mixed in by the share of it that it takes, and at least by this. */
const LEAST_SHARE = 0.05;

/**
 * Rectangles that are less than a pixel high. Of each row of pixels, it is noted where the share of a
 * colour rises and falls; then all of them are mixed in at once, however many there are.
 */
class ThinRectangles {
  constructor(image) {
    this.image = image;
    this.changes = [];  // By colour, made when it is first met.
    this.rows = new Uint8Array(image.height);
  }

  add(colour, y, x0, x1, share) {
    const stride = this.image.width + 1;
    if (!this.changes[colour]) this.changes[colour] = new Float32Array(stride * this.image.height);
    const changes = this.changes[colour];
    changes[y * stride + x0] += share;
    changes[y * stride + x1] -= share;
    this.rows[y] = 1;
  }

  /** Mixes all of them in, and forgets them. */
  mix(colours) {
    for (let colour = 0; colour < colours.length; ++colour) {
      if (!this.changes[colour]) continue;
      for (let y = 0; y < this.image.height; ++y) if (this.rows[y]) this.mixRow(this.changes[colour], y, colours[colour]);
    }
    this.rows.fill(0);
  }

  mixRow(changes, y, colour) {
    const { width } = this.image;
    let share = 0;
    let from = 0;
    // Runs of equal shares are mixed in as one.
    for (let x = 0; x <= width; ++x) {
      const change = changes[y * (width + 1) + x];
      if (change === 0 && x < width) continue;
      changes[y * (width + 1) + x] = 0;
      const parts = Math.round(256 * Math.min(1, share));
      if (parts > 0 && x > from) blendRectangle(this.image, from, y, x, y + 1, colour, parts);
      share += change;
      from = x;
    }
  }
}

class AddressMap extends Plot {
  constructor(subject, axis, { height = 460, most = null, colouring = "kind" } = {}) {
    super(height, "Address map: time across, addresses up");
    this.subject = subject;
    this.axis = axis;
    this.most = most || Math.max(1, subject.figures.footprint_bytes, subject.planned ? subject.figures.limit_bytes : 0);
    if (!most && this.most > 2 * subject.figures.footprint_bytes) this.most = subject.figures.footprint_bytes;
    this.zoomUp = 1;  // How much taller than the plot all addresses are,
    this.shiftUp = 0;  // and how many pixels of that are above it: 0 or less.
    this.colouring = colouring;
    this.found = null;
    this.current = -1;
    this.sortRectangles();
    this.over.addEventListener("pointermove", (event) => this.hover(event));
    this.over.addEventListener("pointerleave", () => { this.clear(); tip.hide(); });
    axis.add(this);
  }

  /** The largest first, so that what is small is drawn above. */
  sortRectangles() {
    const r = this.subject.rectangles;
    const areas = Float64Array.from({ length: r.count }, (_, k) => (r.high[k] - r.low[k]) * (r.end[k] - r.begin[k]));
    this.order = Uint32Array.from({ length: r.count }, (_, k) => k).sort((a, b) => areas[b] - areas[a]);
    const inOrder = (values) => Float64Array.from(this.order, (k) => values[k]);
    this.sorted = { begin: inOrder(r.begin), end: inOrder(r.end), low: inOrder(r.low), high: inOrder(r.high), variable: Uint32Array.from(this.order, (k) => r.variable[k]) };
  }

  upScale() {
    return d3.scaleLinear().domain([0, this.most]).range([this.plotHeight * this.zoomUp + this.shiftUp, this.shiftUp]);
  }
  /** The axis that is seen, which is a part of it. */
  shownScale() {
    const up = this.upScale();
    return d3.scaleLinear().domain([up.invert(this.plotHeight), up.invert(0)]).range([this.plotHeight, 0]);
  }

  height0() { return { shift: this.shiftUp, zoom: this.zoomUp }; }
  onZoom(transform, before, event) {
    const factor = transform.k / before.k;
    if (factor !== 1 && event.type !== "mousemove") {
      this.zoomHeight(factor, d3.clientPoint(this.over, event.touches ? event.touches[0] : event)[1]);
    } else if (this.dragFrom) {
      this.shiftUp = this.dragFrom.shift + transform.y;
      this.clampHeight();
    }
  }
  zoomHeight(factor, at = this.plotHeight / 2) {
    const zoom = Math.min(1e6, Math.max(1, this.zoomUp * factor));
    this.shiftUp = at - (at - this.shiftUp) * zoom / this.zoomUp;
    this.zoomUp = zoom;
    this.clampHeight();
    this.redraw();
  }
  panHeight(share) { this.shiftUp += share * this.plotHeight; this.clampHeight(); this.redraw(); }
  resetHeight() { this.zoomUp = 1; this.shiftUp = 0; }
  clampHeight() { this.shiftUp = Math.min(0, Math.max(this.shiftUp, this.plotHeight * (1 - this.zoomUp))); }

  draw() {
    const begun = performance.now();
    const across = this.axis.scale(this.width);
    this.drawTimeAxis(across);
    this.drawByteAxis(this.shownScale());
    const width = this.base.width;
    const height = this.base.height;
    const context = this.base.getContext("2d");
    if (!this.image || this.image.width !== width || this.image.height !== height) {
      this.data = context.createImageData(width, height);
      this.image = { width, height, pixels: new Uint32Array(this.data.data.buffer) };
    }
    this.image.pixels.fill(colours.pixel("plot"));
    this.drawRectangles(across);
    context.putImageData(this.data, 0, 0);
    this.drawLimit(context);
    this.drawTime = performance.now() - begun;
  }

  /** Which colour of the palette each variable has. */
  looks() {
    if (this.looksFor !== this.colouring) {
      this.lookOf = Uint8Array.from(this.subject.choice, (_, v) => COLOURINGS[this.colouring].of(this.subject, v));
      this.looksFor = this.colouring;
    }
    return this.lookOf;
  }

  palette() {
    const way = COLOURINGS[this.colouring];
    const plot = colours.pixel("plot");
    return way.colours.map((name, k) => {
      const fill = colours.pixel(name);
      const edge = mixPixels(fill, colours.pixel("text"), 0.45);
      return { fill, edge, pale: mixPixels(plot, fill, 0.2), paleEdge: mixPixels(plot, edge, 0.2), pattern: way.patterns[k] };
    });
  }

  drawRectangles(across) {
    const s = this.subject;
    const r = this.sorted;
    const palette = this.palette();
    const lookOf = this.looks();
    const { width, height } = this.image;
    const perNs = (across(1e6) - across(0)) / 1e6 * this.ratio;
    const left = across(0) * this.ratio;
    const bottom = this.upScale()(0) * this.ratio;
    const perByte = this.plotHeight * this.zoomUp / this.most * this.ratio;
    const period = s.iteration * perNs;
    if (!this.thin || this.thin.image !== this.image) this.thin = new ThinRectangles(this.image);
    const thin = this.thin;
    const part = (from, to, y0, y1, tall, look, faded) => {
      const start = Math.round(from);
      const x0 = Math.max(0, start);
      const x1 = Math.min(width, Math.max(Math.round(to), start + 1));
      if (x1 <= x0) return;
      const wide = Math.min(1, to - from);
      if (tall < 0.99) return thin.add(look + (faded ? palette.length : 0), y0, x0, x1, Math.max(LEAST_SHARE, tall * wide));
      const { fill, edge, pale, paleEdge, pattern } = palette[look];
      if (wide < 0.99) blendRectangle(this.image, x0, y0, x1, y1, faded ? pale : fill, Math.round(256 * Math.max(LEAST_SHARE, wide)));
      else fillRectangle(this.image, x0, y0, x1, y1, faded ? pale : fill, faded ? paleEdge : edge, faded ? 0 : pattern);
    };
    for (let k = 0; k < r.begin.length; ++k) {
      const low = Math.round(bottom - r.low[k] * perByte);
      const y1 = Math.min(height, low);
      const y0 = Math.max(0, Math.min(low - 1, Math.round(bottom - r.high[k] * perByte)));
      if (y1 <= 0 || y0 >= height) continue;
      const begin = left + r.begin[k] * perNs;
      const end = left + r.end[k] * perNs;
      if (end < 0 || (begin > width && r.end[k] <= s.iteration)) continue;
      const v = r.variable[k];
      const faded = this.found !== null && !this.found[v];
      const tall = (r.high[k] - r.low[k]) * perByte;
      // What goes on beyond the end of the iteration does so at its beginning.
      if (r.end[k] > s.iteration) {
        part(begin, left + period, y0, y1, tall, lookOf[v], faded);
        part(left, end - period, y0, y1, tall, lookOf[v], faded);
      } else {
        part(begin, end, y0, y1, tall, lookOf[v], faded);
      }
    }
    thin.mix([...palette.map((look) => look.fill), ...palette.map((look) => look.pale)]);
  }

  drawLimit(context) {
    const limit = this.subject.figures.limit_bytes;
    if (limit === null) return;
    const y = this.upScale()(limit) * this.ratio;
    if (y < -2 || y > this.image.height) return;
    context.fillStyle = colours.get("limit");
    context.fillRect(0, Math.max(0, y - this.ratio), this.image.width, 2 * this.ratio);
  }

  /** The rectangle at a point: of several in one pixel, the smallest. */
  find(x, y) {
    const s = this.subject;
    const r = s.rectangles;
    const scale = this.axis.scale(this.width);
    const up = this.upScale();
    const [from, to] = [scale.invert(x - 0.5), scale.invert(x + 0.5)];
    const [low, high] = [up.invert(y + 0.5), up.invert(y - 0.5)];
    for (let k = r.count - 1; k >= 0; --k) {
      const n = this.order[k];
      if (r.low[n] >= high || r.high[n] <= low) continue;
      const wraps = r.end[n] > s.iteration && from < r.end[n] - s.iteration;
      if ((r.begin[n] < to && r.end[n] > from && from < s.iteration) || wraps) return n;
    }
    return -1;
  }

  hover(event) {
    if (event.buttons) return tip.hide();
    this.current = this.find(event.offsetX, event.offsetY);
    this.axis.cursor = this.axis.scale(this.width).invert(event.offsetX);
    this.axis.plots.forEach((p) => p.drawOver());
    if (this.current < 0) {
      const address = Math.max(0, this.upScale().invert(event.offsetY));
      return tip.show(event.clientX, event.clientY, ["free", `address ${formatBytes(address)}, at ${formatTime(Math.max(0, this.axis.cursor))}`]);
    }
    tip.show(event.clientX, event.clientY, describeResidency(this.subject, this.current));
  }

  clear() { this.current = -1; this.axis.cursor = null; this.axis.plots.forEach((p) => p.drawOver()); }

  /** Steps through what is at the cursor, or through what was found, by keyboard. */
  step(by) {
    const r = this.subject.rectangles;
    const wanted = (k) => this.found === null || this.found[r.variable[k]];
    let k = this.current;
    do { k = (k + by + r.count) % r.count; } while (!wanted(k) && k !== this.current && k !== -1);
    this.current = k;
    this.axis.cursor = null;
    this.drawOver();
    const box = this.over.getBoundingClientRect();
    tip.show(box.left + 40, box.top + 20, describeResidency(this.subject, k));
  }

  drawOver() {
    if (this.width === 0) return;
    const context = this.context(this.over);
    drawCursor(context, this.axis, this.width, this.plotHeight);
    if (this.current < 0) return;
    const s = this.subject;
    const r = s.rectangles;
    const across = this.axis.scale(this.width);
    const up = this.upScale();
    context.strokeStyle = colours.get("text");
    // All residencies of the variable, the one at hand thicker.
    const source = s.columns["variable.source"][r.variable[this.current]];
    for (let k = 0; k < r.count; ++k) {
      if (s.columns["variable.source"][r.variable[k]] !== source) continue;
      context.lineWidth = k === this.current ? 2.5 : 1.2;
      const y = up(r.high[k]);
      for (const shift of r.end[k] > s.iteration ? [0, -s.iteration] : [0]) {
        const x = across(r.begin[k] + shift);
        context.strokeRect(x, y, Math.max(2, across(r.end[k] + shift) - x), Math.max(2, up(r.low[k]) - y));
      }
    }
  }

  /** Shows only what a text finds in full colour; returns how many variables. */
  search(text) {
    const s = this.subject;
    const sought = text.trim().toLowerCase();
    this.found = sought === "" ? null : findVariables(s, sought);
    this.redraw();
    return this.found === null ? null : this.found.reduce((a, b) => a + b, 0);
  }

  /** Zooms to a variable of the plan. */
  showVariable(v) {
    const r = this.subject.rectangles;
    const k = r.variable.indexOf(v);
    if (k < 0) return;
    this.current = k;
    const length = Math.max(r.end[k] - r.begin[k], this.axis.length / 1e5);
    this.axis.show(Math.max(0, r.begin[k] - length), Math.min(this.axis.length, r.end[k] + length));
    const size = Math.max(1, r.high[k] - r.low[k]);
    this.zoomUp = Math.min(1e6, Math.max(1, this.most / (8 * size)));
    this.shiftUp = 0;
    this.shiftUp = this.plotHeight / 2 - this.upScale()((r.low[k] + r.high[k]) / 2);
    this.clampHeight();
    this.redraw();
  }
}

/** Which variables a text names: by number, by the op that makes them, by kind or by choice. */
function findVariables(s, sought) {
  const c = s.columns;
  const names = s.names.map((name) => name.toLowerCase().includes(sought));
  const number = /^v?\d+$/.test(sought) ? Number(sought.replace("v", "")) : -1;
  return Uint8Array.from(c["variable.id"], (id, v) => {
    const maker = c["variable.maker"][v];
    return number >= 0 ? id === number
      : (maker >= 0 && names[c["op.name"][maker]]) || KINDS[c["variable.kind"][v]] === sought || CHOICES[s.choice[v]] === sought;
  });
}

function describeResidency(s, k) {
  const r = s.rectangles;
  const c = s.columns;
  const v = r.variable[k];
  const maker = c["variable.maker"][v];
  const replayed = maker >= 0 && c["op.replay"][maker];
  return [
    s.describeVariable(v),
    `${KINDS[c["variable.kind"][v]]}, ${CHOICES[s.choice[v]].replace("both", "swapped and recomputed")}${replayed ? ", rebuilt here" : ""}`,
    ["size", `${formatBytes(c["variable.size"][v])} (${formatCount(c["variable.size"][v])} bytes)`],
    ["address", `${formatBytes(r.low[k])} to ${formatBytes(r.high[k])}`],
    ["there", `${formatTime(r.begin[k])} to ${formatTime(r.end[k])}${r.end[k] > s.iteration ? " (around the end)" : ""}`],
    ["for", formatTime(r.end[k] - r.begin[k])],
    ...(maker >= 0 ? [["made by", s.describeOp(maker)]] : []),
  ];
}

function mapLegend(colouring) {
  const way = COLOURINGS[colouring];
  return makeLegend(...way.names.map((name, k) => [makeSwatch(way.colours[k], way.patterns[k]), name]));
}

function mapAsText(s) {
  const c = s.columns;
  const r = s.rectangles;
  const rows = [];
  for (const way of ["kind", "decision"]) {
    COLOURINGS[way].names.forEach((name, n) => {
      let count = 0;
      let bytes = 0;
      for (let k = 0; k < r.count; ++k) {
        if (COLOURINGS[way].of(s, r.variable[k]) !== n) continue;
        ++count;
        bytes += c["variable.size"][r.variable[k]];
      }
      if (count > 0) rows.push([way, name, formatCount(count), formatBytes(bytes)]);
    });
  }
  return makeTable(["by", "", "rectangles", "bytes in all"], rows, [2, 3]);
}

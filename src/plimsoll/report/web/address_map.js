// SPDX-License-Identifier: Apache-2.0
// Time across, addresses up, a rectangle for each residency: figure 3 of paper 001, alive. Pixels
// are set by hand: that takes a few milliseconds for a hundred thousand rectangles, on any machine.

const COLOURINGS = {
  kind: { names: KINDS, colours: KINDS, patterns: [0, 1, 2, 3, 4], of: (s, v) => s.columns["variable.kind"][v] },
  decision: { names: ["kept", "swapped", "recomputed", "swapped and recomputed"], colours: CHOICES, patterns: [0, 1, 2, 5], of: (s, v) => s.choice[v] },
};

/** What is smaller than a pixel is mixed in by the share of it that it takes, and at least by this. */
const LEAST_SHARE = 0.05;

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
    const area = (k) => (r.high[k] - r.low[k]) * (r.end[k] - r.begin[k]);
    const areas = Float64Array.from({ length: r.count }, (_, k) => area(k));
    this.order = Uint32Array.from({ length: r.count }, (_, k) => k).sort((a, b) => areas[b] - areas[a]);
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
    const r = s.rectangles;
    const palette = this.palette();
    const of = COLOURINGS[this.colouring].of;
    const { width, height } = this.image;
    const ratio = this.ratio;
    const perNs = (across(1e6) - across(0)) / 1e6 * ratio;
    const left = across(0) * ratio;
    const up = this.upScale();
    const bottom = up(0) * ratio;
    const perByte = this.plotHeight * this.zoomUp / this.most * ratio;
    const period = s.iteration * perNs;
    for (const k of this.order) {
      const low = Math.round(bottom - r.low[k] * perByte);
      const y1 = Math.min(height, low);
      const y0 = Math.max(0, Math.min(low - 1, Math.round(bottom - r.high[k] * perByte)));
      if (y1 <= 0 || y0 >= height) continue;
      const v = r.variable[k];
      const look = palette[of(s, v)];
      const faded = this.found !== null && !this.found[v];
      const begin = left + r.begin[k] * perNs;
      const end = left + r.end[k] * perNs;
      // What goes on beyond the end of the iteration does so at its beginning.
      const parts = r.end[k] > s.iteration ? [[begin, left + period], [left, end - period]] : [[begin, end]];
      for (const [from, to] of parts) {
        const start = Math.round(from);
        const x0 = Math.max(0, start);
        const x1 = Math.min(width, Math.max(Math.round(to), start + 1));
        if (x1 <= x0) continue;
        const share = Math.min(1, (r.high[k] - r.low[k]) * perByte) * Math.min(1, to - from);
        if (share < 0.99) blendRectangle(this.image, x0, y0, x1, y1, faded ? look.pale : look.fill, Math.round(256 * Math.max(LEAST_SHARE, share)));
        else fillRectangle(this.image, x0, y0, x1, y1, faded ? look.pale : look.fill, faded ? look.paleEdge : look.edge, faded ? 0 : look.pattern);
      }
    }
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

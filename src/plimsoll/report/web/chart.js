// SPDX-License-Identifier: Apache-2.0
// What charts are made of. Text from files goes through textContent alone, never into markup.

/** Makes an element: attributes, then children, which are elements or texts. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

function makeSection(id, title, ...content) {
  const section = make("section", { id, "aria-labelledby": `${id}-title` }, make("h2", { id: `${id}-title` }, title), ...content);
  document.getElementById("main").append(section);
  return section;
}

function makeTable(head, rows, numbers = []) {
  const cell = (tag) => (text, k) => make(tag, { class: numbers.includes(k) ? "number" : null }, text);
  return make("table", {}, make("thead", {}, make("tr", {}, ...head.map(cell("th")))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map(cell("td"))))));
}

/** The text alternative of a chart, made when it is opened. */
function makeAlternative(content) {
  const details = make("details", {}, make("summary", {}, "The same as text"));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(content());
  });
  return details;
}

const colours = {
  cache: new Map(),
  get(name) {
    if (!this.cache.has(name)) this.cache.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
    return this.cache.get(name);
  },
  /** As a pixel: little-endian RGBA. */
  pixel(name) {
    const c = d3.color(this.get(name));
    return (255 << 24 | c.b << 16 | c.g << 8 | c.r) >>> 0;
  },
};

function mixPixels(a, b, share) {
  let mixed = 255 << 24;
  for (const shift of [0, 8, 16]) {
    mixed |= Math.round(((a >> shift) & 255) * (1 - share) + ((b >> shift) & 255) * share) << shift;
  }
  return mixed >>> 0;
}

const tip = {
  element: document.getElementById("tip"),
  /** Shows lines: the first is a title; a row of two is a line of a table. */
  show(x, y, lines) {
    const [title, ...rest] = lines;
    const parts = [make("b", {}, title)];
    let table = null;
    for (const line of rest) {
      if (Array.isArray(line)) {
        if (table === null) parts.push(table = make("table"));
        table.append(make("tr", {}, ...line.map((text) => make("td", {}, text))));
      } else {
        table = null;
        parts.push(make("div", { class: "soft" }, line));
      }
    }
    this.element.replaceChildren(...parts);
    this.element.hidden = false;
    const box = this.element.getBoundingClientRect();
    const left = x + 16 + box.width > innerWidth ? x - 16 - box.width : x + 16;
    const top = y + 16 + box.height > innerHeight ? y - 16 - box.height : y + 16;
    this.element.style.left = `${Math.max(4, left)}px`;
    this.element.style.top = `${Math.max(4, top)}px`;
  },
  hide() { this.element.hidden = true; },
};

const PATTERNS = { plain: 0, rising: 1, falling: 2, dots: 3, lines: 4, cross: 5 };

/** Whether a pixel of a pattern is dark. */
function isDark(pattern, x, y) {
  switch (pattern) {
    case 1: return (x + y) % 6 === 0;
    case 2: return (x - y + 60000) % 6 === 0;
    case 3: return x % 5 === 0 && y % 5 === 0;
    case 4: return y % 5 === 0;
    case 5: return (x + y) % 8 === 0 || (x - y + 80000) % 8 === 0;
    default: return false;
  }
}

/** Fills [x0, x1) x [y0, y1) of an image, with a border and a pattern where there is room. */
function fillRectangle(image, x0, y0, x1, y1, fill, edge, pattern) {
  const { width, pixels } = image;
  for (let y = y0; y < y1; ++y) pixels.fill(fill, y * width + x0, y * width + x1);
  if (x1 - x0 < 4 || y1 - y0 < 4) return;
  if (pattern && x1 - x0 > 7 && y1 - y0 > 7) {
    for (let y = y0; y < y1; ++y) {
      for (let x = x0; x < x1; ++x) if (isDark(pattern, x, y)) pixels[y * width + x] = edge;
    }
  }
  pixels.fill(edge, y0 * width + x0, y0 * width + x1);
  for (let y = y0; y < y1; ++y) pixels[y * width + x0] = edge;
}

/** Mixes a colour into [x0, x1) x [y0, y1) of an image, by so many parts of 256. */
function blendRectangle(image, x0, y0, x1, y1, fill, parts) {
  const { width, pixels } = image;
  const rest = 256 - parts;
  const redBlue = (fill & 0xff00ff) * parts;
  const green = (fill & 0xff00) * parts;
  for (let y = y0; y < y1; ++y) {
    for (let at = y * width + x0; at < y * width + x1; ++at) {
      const old = pixels[at];
      pixels[at] = 0xff000000 | (((redBlue + (old & 0xff00ff) * rest) >>> 8) & 0xff00ff) | (((green + (old & 0xff00) * rest) >>> 8) & 0xff00);
    }
  }
}

/** A patch of colour and pattern for a legend. */
function makeSwatch(colour, pattern) {
  const canvas = make("canvas", { width: 22, height: 16, "aria-hidden": "true" });
  const paint = () => {
    const context = canvas.getContext("2d");
    const data = context.createImageData(22, 16);
    const image = { width: 22, height: 16, pixels: new Uint32Array(data.data.buffer) };
    const fill = colours.pixel(colour);
    fillRectangle(image, 0, 0, 22, 16, fill, mixPixels(fill, colours.pixel("text"), 0.55), pattern);
    context.putImageData(data, 0, 0);
  };
  paint();
  repaints.push(paint);
  return canvas;
}

/** A piece of line for a legend. */
function makeStroke(colour, dash, width = 2) {
  const svg = d3.create("svg").attr("width", 28).attr("height", 14).attr("aria-hidden", "true");
  svg.append("line").attr("x1", 1).attr("x2", 27).attr("y1", 7).attr("y2", 7)
    .style("stroke", `var(--${colour})`).style("stroke-width", width).style("stroke-dasharray", dash);
  return svg.node();
}

function makeLegend(...entries) {
  return make("div", { class: "legend" }, ...entries.map(([mark, text]) => make("span", {}, mark, text)));
}

/** What is drawn again when the theme changes. */
const repaints = [];

/** A frame with axes, a canvas to draw on and one above it for what follows the pointer. */
class Plot {
  constructor(height, label, margin = {}) {
    this.margin = { left: 88, right: 14, top: 8, bottom: 26, ...margin };
    this.height = height;
    this.width = 0;
    this.root = make("div", { class: "plot", tabindex: 0, role: "application", "aria-label": label, style: `height:${height}px` });
    this.base = make("canvas", { class: "base" });
    this.over = make("canvas", { class: "over" });
    this.svg = d3.create("svg").attr("aria-hidden", "true");
    this.across = this.svg.append("g");
    this.up = this.svg.append("g");
    this.marks = this.svg.append("g");
    this.root.append(this.base, this.over, this.svg.node());
    this.waiting = false;
    this.seen = true;  // Whether any of it is on the screen: what is not is drawn when it gets there.
    this.stale = false;
    new ResizeObserver(() => this.layout()).observe(this.root);
    new IntersectionObserver((entries) => {
      this.seen = entries[entries.length - 1].isIntersecting;
      if (this.seen && this.stale) this.paint();
    }, { rootMargin: "100px" }).observe(this.root);
    repaints.push(() => this.paint());
  }

  get plotHeight() { return this.height - this.margin.top - this.margin.bottom; }

  layout() {
    const width = Math.max(60, Math.floor(this.root.clientWidth) - this.margin.left - this.margin.right);
    if (width === this.width) return;
    this.width = width;
    this.ratio = Math.min(2, window.devicePixelRatio || 1);
    for (const canvas of [this.base, this.over]) {
      canvas.width = Math.round(width * this.ratio);
      canvas.height = Math.round(this.plotHeight * this.ratio);
      canvas.style.cssText = `left:${this.margin.left}px;top:${this.margin.top}px;width:${width}px;height:${this.plotHeight}px`;
    }
    this.svg.attr("width", this.root.clientWidth).attr("height", this.height);
    this.across.attr("transform", `translate(${this.margin.left},${this.height - this.margin.bottom})`);
    this.up.attr("transform", `translate(${this.margin.left},${this.margin.top})`);
    this.marks.attr("transform", `translate(${this.margin.left},${this.margin.top})`);
    if (this.onLayout) this.onLayout();
    this.paint();
  }

  /** Draws before the next frame, once. */
  redraw() {
    if (this.waiting || this.width === 0) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      if (this.seen) this.paint();
      else this.stale = true;
    });
  }

  paint() {
    if (this.width === 0 || !this.draw) return;
    this.stale = false;
    this.draw();
    this.drawOver();
  }
  drawOver() {}

  context(canvas) {
    const context = canvas.getContext("2d");
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.plotHeight);
    return context;
  }

  drawByteAxis(scale) {
    const [low, high] = scale.domain();
    const ticks = byteTicks(low, high, Math.max(2, this.plotHeight / 34));
    this.up.call(d3.axisLeft(scale).tickValues(ticks).tickFormat(formatByteTick).tickSizeOuter(0));
    this.up.attr("font-family", null);
  }

  drawTimeAxis(scale) {
    const [low, high] = scale.domain();
    this.across.call(d3.axisBottom(scale).ticks(Math.max(2, this.width / 130)).tickFormat(timeTickFormat(high - low)).tickSizeOuter(0));
    this.across.attr("font-family", null);
  }
}

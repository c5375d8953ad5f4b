// SPDX-License-Identifier: Apache-2.0
// Charts over time show the same stretch of it: zooming one zooms all.

class TimeAxis {
  constructor(length) {
    this.length = Math.max(1, length);
    this.transform = d3.zoomIdentity;
    this.width = 0;
    this.plots = [];
    this.cursor = null;
  }

  scale(width) { return this.transform.rescaleX(d3.scaleLinear().domain([0, this.length]).range([0, width])); }

  add(plot) {
    this.plots.push(plot);
    const surface = d3.select(plot.over);
    const zoom = d3.zoom().scaleExtent([1, 1e6])
      .filter(() => {
        const event = d3.event;
        if (event.type === "wheel") return event.ctrlKey || event.metaKey || plot.root.contains(document.activeElement);
        return !event.button;
      })
      .on("start", () => { plot.dragFrom = plot.height0 ? plot.height0() : null; })
      .on("zoom", () => {
        const { transform, sourceEvent } = d3.event;
        if (!sourceEvent) return;
        if (plot.onZoom) plot.onZoom(transform, this.transform, sourceEvent);
        this.set(transform);
      });
    surface.call(zoom).on("dblclick.zoom", null).on("dblclick", () => this.reset(plot));
    plot.onLayout = () => {
      zoom.extent([[0, 0], [plot.width, plot.plotHeight]]).translateExtent([[0, -1e9], [plot.width, 1e9]]);
      if (this.width > 0 && this.width !== plot.width) {
        this.transform = d3.zoomIdentity.translate(this.transform.x * plot.width / this.width, 0).scale(this.transform.k);
      }
      this.width = plot.width;
      this.sync();
    };
    plot.root.addEventListener("keydown", (event) => this.onKey(event, plot));
    plot.root.addEventListener("pointerdown", () => plot.root.focus({ preventScroll: true }));
  }

  set(transform) {
    const k = Math.min(1e6, Math.max(1, transform.k));
    const x = Math.min(0, Math.max(transform.x, this.width * (1 - k)));
    this.transform = d3.zoomIdentity.translate(x, 0).scale(k);
    this.sync();
  }

  sync() {
    for (const plot of this.plots) {
      plot.over.__zoom = this.transform;
      plot.redraw();
    }
  }

  /** Shows [from, to]. */
  show(from, to) {
    const k = this.length / Math.max(to - from, this.length * 1e-6);
    this.set(d3.zoomIdentity.translate(-from / this.length * this.width * k, 0).scale(k));
  }

  reset(plot) {
    if (plot.resetHeight) plot.resetHeight();
    this.set(d3.zoomIdentity);
  }

  zoomBy(factor) {
    const k = Math.min(1e6, Math.max(1, this.transform.k * factor));
    const middle = this.width / 2;
    this.set(d3.zoomIdentity.translate(middle - (middle - this.transform.x) * k / this.transform.k, 0).scale(k));
  }

  panBy(share) { this.set(d3.zoomIdentity.translate(this.transform.x - share * this.width, 0).scale(this.transform.k)); }

  onKey(event, plot) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== plot.root) return;
    const actions = {
      ArrowLeft: () => this.panBy(-0.1), ArrowRight: () => this.panBy(0.1),
      "+": () => this.zoomBy(1.5), "=": () => this.zoomBy(1.5), "-": () => this.zoomBy(1 / 1.5),
      "0": () => this.reset(plot), Home: () => this.reset(plot),
      ".": () => plot.step && plot.step(1), ",": () => plot.step && plot.step(-1),
      Escape: () => { tip.hide(); if (plot.clear) plot.clear(); },
    };
    if (plot.panHeight) {
      actions.ArrowUp = () => plot.panHeight(0.1);
      actions.ArrowDown = () => plot.panHeight(-0.1);
      actions.PageUp = () => plot.zoomHeight(1.5);
      actions.PageDown = () => plot.zoomHeight(1 / 1.5);
    }
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }
}

/** The sentence that says how a chart is used. */
function makeHint(map) {
  const keys = (names) => names.map((name) => make("kbd", {}, name));
  return make("p", { class: "caption hint" },
    "Drag to pan; Ctrl and wheel zoom, or the wheel alone once the chart was clicked; double click shows all. Keys: ",
    ...keys(["←", "→"]), " pan, ", ...keys(["+", "−"]), " zoom, ", ...keys(["0"]), " all, ", ...keys([",", "."]), " op by op",
    ...(map ? [", ", ...keys(["↑", "↓"]), " addresses, ", ...keys(["PgUp", "PgDn"]), " zoom them"] : []), ".");
}

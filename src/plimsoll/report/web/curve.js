// SPDX-License-Identifier: Apache-2.0
// What limits cost: overhead over limit, by planner, with what no plan beats.

class CurveChart extends Plot {
  constructor(curve, figures) {
    super(340, "What limits cost: overhead by limit", { left: 64, right: 24, bottom: 44, top: 16 });
    this.curve = curve;
    this.figures = figures;
    this.svg.style("pointer-events", "auto");
    this.base.style.display = "none";
  }

  points() {
    return [...this.curve.curves.flatMap((c) => c.points), ...this.curve.bound, ...(this.chosen() ? [this.chosen()] : [])];
  }
  chosen() {
    const f = this.figures;
    return f.limit_bytes === null ? null : [f.limit_bytes / f.peak_load_bytes, f.overhead];
  }

  draw() {
    const points = this.points();
    const low = Math.min(d3.min(points, (p) => p[0]), this.curve.smallest_limit === null ? 1 : this.curve.smallest_limit);
    const x = d3.scaleLinear().domain([Math.max(0, low - 0.03), d3.max(points, (p) => p[0]) + 0.03]).range([0, this.width]);
    const most = Math.max(0.02, d3.max(points, (p) => p[1]));
    // About linear up to a percent, logarithmic above: as in the terminal.
    const y = d3.scaleSymlog().constant(0.01).domain([0, most * 1.15]).range([this.plotHeight, 0]);
    const ticks = [];
    for (const t of [0, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 1000]) {
      // Of ticks without room for their labels, the lower one stays.
      if (t <= most * 1.15 && (ticks.length === 0 || y(ticks[ticks.length - 1]) - y(t) >= 16)) ticks.push(t);
    }
    this.across.call(d3.axisBottom(x).ticks(Math.max(3, this.width / 110)).tickFormat((t) => `${Math.round(100 * t)} %`).tickSizeOuter(0)).attr("font-family", null);
    this.up.call(d3.axisLeft(y).tickValues(ticks).tickFormat((t) => `${d3.format("~g")(100 * t)} %`).tickSizeInner(-this.width).tickSizeOuter(0)).attr("font-family", null);
    this.up.selectAll(".tick line").style("stroke-opacity", 0.5);
    this.marks.selectAll("*").remove();
    this.marks.append("text").attr("x", this.width / 2).attr("y", this.plotHeight + 38).attr("text-anchor", "middle").text("limit, of the peak load");
    this.marks.append("text").attr("x", -52).attr("y", -4).text("overhead");
    const line = d3.line().x((p) => x(p[0])).y((p) => y(Math.max(0, p[1])));
    this.drawSmallest(x);
    this.marks.append("path").attr("d", line(this.curve.bound)).style("fill", "none").style("stroke", "var(--limit)").style("stroke-width", 2).style("stroke-dasharray", "2 4");
    this.curve.curves.forEach((curve, k) => this.drawCurve(curve, k, line, x, y));
    this.drawChosen(x, y);
  }

  drawSmallest(x) {
    if (this.curve.smallest_limit === null) return;
    const at = x(this.curve.smallest_limit);
    this.marks.append("line").attr("x1", at).attr("x2", at).attr("y1", 0).attr("y2", this.plotHeight).style("stroke", "var(--soft)").style("stroke-dasharray", "6 4");
    // At the bottom: so little memory is costly, and curves are at the top there.
    const left = at > this.width - 160;
    this.marks.append("text").attr("x", left ? at - 6 : at + 6).attr("y", this.plotHeight - 6).attr("text-anchor", left ? "end" : "start").text(`smallest limit ${formatPercent(this.curve.smallest_limit)}`);
  }

  drawCurve(curve, k, line, x, y) {
    const colour = `var(--curve-${k % 6})`;
    this.marks.append("path").attr("d", line(curve.points)).style("fill", "none").style("stroke", colour).style("stroke-width", 2);
    const marks = this.marks.append("g").selectAll("path").data(curve.points).enter().append("path")
      .attr("class", "point").attr("d", curveSymbol(k)).attr("transform", (p) => `translate(${x(p[0])},${y(Math.max(0, p[1]))})`).style("fill", colour);
    marks.on("mousemove", (p) => tip.show(d3.event.clientX, d3.event.clientY, [showText(curve.name),
      ["limit", `${formatBytes(p[0] * this.figures.peak_load_bytes)} (${formatPercent(p[0])})`], ["overhead", `${(100 * p[1]).toFixed(2)} %`]]))
      .on("mouseleave", () => tip.hide());
  }

  drawChosen(x, y) {
    const chosen = this.chosen();
    if (!chosen) return;
    const at = `translate(${x(chosen[0])},${y(Math.max(0, chosen[1]))})`;
    this.marks.append("circle").attr("transform", at).attr("r", 9).style("fill", "none").style("stroke", "var(--text)").style("stroke-width", 2);
    const left = x(chosen[0]) > this.width - 110;
    this.marks.append("text").attr("transform", at).attr("x", left ? -13 : 13).attr("y", -8).attr("text-anchor", left ? "end" : "start").style("fill", "var(--text)").style("font-weight", 600).text(`this plan, ${formatPercent(chosen[1])}`);
  }
}

function curveSymbol(k) { return d3.symbol().size(64).type(d3.symbols[k % d3.symbols.length])(); }

function curveLegend(curve) {
  const mark = (k) => {
    const svg = d3.create("svg").attr("width", 16).attr("height", 16).attr("aria-hidden", "true");
    svg.append("path").attr("transform", "translate(8,8)").attr("d", curveSymbol(k)).style("fill", `var(--curve-${k % 6})`);
    return svg.node();
  };
  return makeLegend(...curve.curves.map((c, k) => [mark(k), showText(c.name)]), [makeStroke("limit", "2 4"), "bound: no plan is below"], [makeStroke("soft", "6 4"), "smallest limit known"]);
}

function curveAsText(curve, figures) {
  const rows = curve.bound.map(([limit, bound]) => [formatBytes(limit * figures.peak_load_bytes), formatPercent(limit),
    ...curve.curves.map((c) => { const p = c.points.find((q) => q[0] === limit); return p ? `${(100 * p[1]).toFixed(2)} %` : "does not fit"; }), `${(100 * bound).toFixed(2)} %`]);
  return makeTable(["limit", "of peak", ...curve.curves.map((c) => showText(c.name)), "bound"], rows, d3.range(curve.curves.length + 3));
}

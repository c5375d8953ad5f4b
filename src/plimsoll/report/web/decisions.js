// SPDX-License-Identifier: Apache-2.0
// The table of variables: what becomes of each, what that costs, and why. Only the rows that are
// seen are in the page, so that forty thousand are no burden.

const ROW = 46;

/** Says why, in words; figures come with the row. */
function reasonInWords(row) {
  const trip = formatTime(row.roundTrip);
  switch (row.reason) {
    case 0: return "There is no limit: everything stays.";
    case 1: return "Stays: never idle long enough for another op to run.";
    case 2: return "Stays: while it is idle, the load is within the limit anyway.";
    case 3: return `Stays: idle for ${formatTime(row.gap)} at most, but copies out and back take ${trip}.`;
    case 4: return "Stays: it could leave, but the limit is met without.";
    case 5: return `Leaves${row.choice === 3 ? " and is rebuilt, too" : ""}: its copies (${formatTime(row.copies)}) run beside the ops; none waits for it.`;
    case 6: return `Leaves${row.choice === 3 ? " and is rebuilt, too" : ""}: its copies take ${formatTime(row.copies)}; ops wait ${formatTime(row.stall)} for it.`;
    case 7: return `Dropped: running ${countOps(row.replays)} again takes ${formatTime(row.replayTime)}, copies would take ${trip}.`;
    default: return `Dropped: running ${countOps(row.replays)} again takes ${formatTime(row.replayTime)}; copies (${trip}) would need the link.`;
  }
}
function countOps(count) { return count === 1 ? "1 op" : `${count} ops`; }

class DecisionTable {
  constructor(subject, onChoose) {
    this.subject = subject;
    this.onChoose = onChoose;
    this.rows = makeDecisionRows(subject);
    this.key = "size";
    this.descending = true;
    this.text = "";
    this.choice = "";
    this.kind = "";
    this.root = make("div", {}, this.makeTools(), this.makeFrame());
    this.update();
    repaints.push(() => this.paint());
  }

  makeTools() {
    const select = (label, names, set) => {
      const box = make("select", { onchange: (event) => { set(event.target.value); this.update(); } }, make("option", { value: "" }, "all"),
        ...names.map((name, k) => make("option", { value: String(k) }, name)));
      return make("label", {}, label, box);
    };
    this.count = make("span", { class: "count", role: "status" });
    const search = make("input", { type: "search", placeholder: "number, op or reason", "aria-label": "Filter the table", id: "decision-filter",
      oninput: (event) => { this.text = event.target.value.trim().toLowerCase(); this.update(); } });
    const choices = select("choice", COLOURINGS.decision.names, (value) => { this.choice = value; });
    choices.lastChild.id = "decision-choice";
    return make("div", { class: "tools" }, make("label", {}, "filter", search), choices,
      select("kind", KINDS, (value) => { this.kind = value; }), this.count);
  }

  makeFrame() {
    this.columns = [["id", "variable", true], ["maker", "made by"], ["kindName", "kind"], ["size", "size", true], ["gap", "longest gap", true], ["choice", "choice"], ["cost", "cost", true], ["words", "reason"]];
    this.heads = this.columns.map(([key, title, number]) => make("div", { role: "columnheader", class: number ? "number" : null, "data-key": key },
      make("button", { type: "button", onclick: () => this.sortBy(key) }, title)));
    this.body = make("div", { class: "body", role: "rowgroup" });
    this.frame = make("div", { class: "rows", role: "table", "aria-label": "Decisions", tabindex: 0 },
      make("div", { class: "grid head", role: "row" }, ...this.heads), this.body);
    this.frame.addEventListener("scroll", () => this.paint());
    this.frame.addEventListener("keydown", (event) => this.onKey(event));
    new ResizeObserver(() => this.paint()).observe(this.frame);
    return this.frame;
  }

  sortBy(key) {
    this.descending = this.key === key ? !this.descending : ["size", "gap", "cost"].includes(key);
    this.key = key;
    this.update();
  }

  update() {
    const { text, choice, kind, key } = this;
    this.shown = this.rows.filter((row) => (choice === "" || row.choice === Number(choice)) && (kind === "" || row.kind === Number(kind)) &&
      (text === "" || String(row.id) === text || `v${row.id}` === text || row.maker.toLowerCase().includes(text) || row.words.toLowerCase().includes(text)));
    const sign = this.descending ? -1 : 1;
    this.shown.sort((a, b) => sign * (a[key] < b[key] ? -1 : a[key] > b[key] ? 1 : 0) || a.order - b.order);
    for (const head of this.heads) head.setAttribute("aria-sort", head.dataset.key === key ? (this.descending ? "descending" : "ascending") : "none");
    this.count.textContent = `${formatCount(this.shown.length)} of ${formatCount(this.rows.length)} variables, ${formatBytes(d3.sum(this.shown, (row) => row.size))}`;
    this.frame.setAttribute("aria-rowcount", this.shown.length + 1);
    this.body.style.height = `${Math.min(this.shown.length * ROW, 15e6)}px`;
    this.frame.scrollTop = 0;
    this.paint();
  }

  paint() {
    const first = Math.max(0, Math.floor(this.frame.scrollTop / ROW) - 4);
    const last = Math.min(this.shown.length, first + Math.ceil((this.frame.clientHeight || 470) / ROW) + 8);
    this.body.replaceChildren(...d3.range(first, last).map((k) => this.makeRow(this.shown[k], k)));
  }

  makeRow(row, k) {
    const cell = (text, kind) => make("div", { role: "cell", class: kind || null }, make("span", { class: "clamp" }, text));
    return make("div", { class: "grid", role: "row", "aria-rowindex": k + 2, style: `top:${k * ROW}px`, tabindex: -1, title: "Show it in the address map", onclick: () => this.onChoose(row.planned) },
      cell(String(row.id), "number"), cell(row.maker || "–"), cell(row.kindName), cell(formatBytes(row.size), "number"), cell(row.gap > 0 ? formatTime(row.gap) : "–", "number"),
      make("div", { role: "cell" }, make("span", { class: `choice choice-${row.choice}` }, row.choice === 3 ? "both" : CHOICES[row.choice])), cell(row.cost > 0 ? formatTime(row.cost) : "–", "number"), cell(row.words));
  }

  onKey(event) {
    const rows = [...this.body.children];
    const at = rows.indexOf(document.activeElement);
    if (event.key === "Enter" && at >= 0) return rows[at].click();
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    const next = rows[at < 0 ? Math.min(4, rows.length - 1) : at + (event.key === "ArrowDown" ? 1 : -1)];
    if (!next) return;
    const index = next.getAttribute("aria-rowindex");
    this.frame.scrollTop = Math.max(0, (index - 2) * ROW - 200);
    this.paint();
    const again = this.body.querySelector(`[aria-rowindex="${index}"]`);
    if (again) again.focus({ preventScroll: true });
  }
}

function makeDecisionRows(s) {
  const c = s.columns;
  return Array.from(c["decision.planned"], (planned, k) => ({ planned, k })).filter(({ planned }) => planned >= 0).map(({ planned, k }) => {
    const maker = c["variable.maker"][planned];
    const row = {
      order: k, planned, id: c["variable.id"][planned], kind: c["variable.kind"][planned], kindName: KINDS[c["variable.kind"][planned]],
      size: c["variable.size"][planned], gap: c["decision.gap"][k], choice: c["decision.choice"][k], reason: c["decision.reason"][k],
      roundTrip: c["decision.round_trip"][k], copies: c["decision.copies"][k], replays: c["decision.replays"][k], replayTime: c["decision.replays_ns"][k],
      stall: c["decision.stall"][k], maker: maker < 0 ? "" : showText(s.opName(maker)),
    };
    row.cost = row.copies + row.replayTime;
    row.words = reasonInWords(row);
    return row;
  });
}

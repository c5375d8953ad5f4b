// SPDX-License-Identifier: Apache-2.0
// The HTML report in a real browser: what is there, and whether hover, zoom, search, sort and filter
// do what they say. scripts/test_report.sh makes the reports and runs this.
//
//   REPORTS=folder [SCREENSHOTS=folder] node --test report_test.mjs
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const folder = process.env.REPORTS;
const screenshots = process.env.SCREENSHOTS;
const profile = fs.mkdtempSync(path.join(os.tmpdir(), "plimsoll-report-"));
let context;

before(async () => {
  context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
    viewport: { width: 1280, height: 900 },
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
});
after(async () => {
  await context?.close();
  fs.rmSync(profile, { recursive: true, force: true });
});

const has = (name) => fs.existsSync(path.join(folder, `${name}.html`));
const figuresOf = (name) => JSON.parse(fs.readFileSync(path.join(folder, `${name}.json`), "utf8"));

/** Opens a report from disk; nothing may be said on the console, and nothing fetched. */
async function open(name, { width = 1280, scheme = "light" } = {}) {
  const page = await context.newPage();
  page.faults = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) page.faults.push(message.text()); });
  page.on("pageerror", (error) => page.faults.push(String(error)));
  page.on("request", (request) => { if (!/^(file|data|blob):/.test(request.url())) page.faults.push(`fetches ${request.url()}`); });
  page.on("dialog", (dialog) => { page.faults.push(`dialog ${dialog.message()}`); dialog.dismiss(); });
  await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ colorScheme: scheme });
  await page.goto(pathToFileURL(path.join(folder, `${name}.html`)).href);
  await page.waitForSelector("html[data-ready]", { timeout: 60000 });
  return page;
}

async function close(page) {
  assert.deepEqual(page.faults, []);
  await page.close();
}

/** The canvas of a section that the pointer goes over, in view. */
async function surface(page, section) {
  const canvas = page.locator(`#${section} canvas.over`).first();
  await canvas.scrollIntoViewIfNeeded();
  await page.evaluate((id) => document.getElementById(id).scrollIntoView(), section);
  return { canvas, box: await canvas.boundingBox() };
}
/** Units are kept with their numbers by spaces that do not break. */
const headline = async (page) => (await page.locator("#headline").innerText()).replaceAll("\u00a0", " ");
const tipText = (page) => page.locator("#tip").innerText();
const pixels = (page, section) => page.locator(`#${section} canvas.base`).first().evaluate((c) => c.toDataURL());
const ticks = (page, section) => page.locator(`#${section} .plot svg g:first-of-type .tick text`).allTextContents();
const settle = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

const reports = ["resnet50", "large", "run", "compare", "trace"].filter(has);

for (const name of reports) {
  test(`${name}: everything is there, and its figures are those of --json`, async () => {
    const page = await open(name);
    const figures = figuresOf(name);
    const embedded = await page.locator("#figures").evaluate((e) => JSON.parse(e.textContent)[0]);
    assert.deepEqual(embedded, figures);
    assert.equal(await headline(page), figures.headline);
    const sections = ["figures-section", "memory", "map", "lanes", "decisions"];
    for (const id of sections) assert.equal(await page.locator(`#${id}`).count(), 1, id);
    const bytes = (n) => { let k = 0; while (n >= 1024 && k < 6) { n /= 1024; ++k; } return k === 0 ? `${n} B` : `${n.toFixed(2)} ${["B", "KiB", "MiB", "GiB", "TiB"][k]}`; };
    const shown = async (key) => (await page.locator(`[data-figure=${key}]`).innerText()).split("\n")[0];
    assert.equal(await shown("peak_load_bytes"), bytes(figures.peak_load_bytes));
    if (figures.limit_bytes !== null) {
      assert.equal(await shown("limit_bytes"), bytes(figures.limit_bytes));
      assert.equal(await shown("overhead"), `${(100 * figures.overhead).toFixed(1)} %`);
      assert.equal(await shown("bound_overhead"), `${(100 * figures.bound_overhead).toFixed(1)} %`);
      assert.ok(figures.peak_load_planned_bytes <= figures.limit_bytes);
    }
    if (figures.overhead_measured !== null) assert.equal(await shown("overhead_measured"), `${(100 * figures.overhead_measured).toFixed(1)} %`);
    await close(page);
  });
}

test("hover names the op, the largest variables, the rectangle, and what a command waits for", async () => {
  const page = await open("resnet50");
  const memory = await surface(page, "memory");
  await page.mouse.move(memory.box.x + memory.box.width / 2, memory.box.y + 100);
  assert.match(await tipText(page), /op \d+ .*\n.*at .* ms[^]*load without a plan[^]*load with it[^]*variables; the largest/);
  const map = await surface(page, "map");
  await page.mouse.move(map.box.x + map.box.width / 2, map.box.y + map.box.height - 3);
  assert.match(await tipText(page), /variable \d+[^]*size[^]*address[^]*there/);
  const lanes = await surface(page, "lanes");
  await page.mouse.move(lanes.box.x + lanes.box.width / 2, lanes.box.y + 36);
  assert.match(await tipText(page), /op \d+|waits for/);
  await page.mouse.move(5, 5);
  await close(page);
});

test("a chart that was off the screen is drawn again when it gets there", async () => {
  const page = await open("resnet50");
  await page.setViewportSize({ width: 1280, height: 460 });
  await page.evaluate(() => document.getElementById("decisions").scrollIntoView());
  await settle(page);
  const whole = await pixels(page, "memory");
  await page.locator("#map .plot").first().evaluate((plot) => {
    plot.focus({ preventScroll: true });
    for (let k = 0; k < 4; ++k) plot.dispatchEvent(new KeyboardEvent("keydown", { key: "+", bubbles: true }));
  });
  await settle(page);
  assert.equal(await pixels(page, "memory"), whole);
  await surface(page, "memory");
  await settle(page);
  assert.notEqual(await pixels(page, "memory"), whole);
  await close(page);
});

test("wheel and keys zoom and pan, all charts together; double click shows all", async () => {
  const page = await open("resnet50");
  const { canvas, box } = await surface(page, "map");
  const whole = await pixels(page, "map");
  const wholeTicks = await ticks(page, "memory");
  await page.mouse.move(box.x + box.width / 3, box.y + box.height / 2);
  await page.mouse.wheel(0, -400);  // Without a click, the page scrolls.
  await settle(page);
  assert.deepEqual(await ticks(page, "memory"), wholeTicks);
  await surface(page, "map");
  await canvas.click();
  await page.mouse.wheel(0, -600);
  await settle(page);
  assert.notDeepEqual(await ticks(page, "memory"), wholeTicks);
  assert.notEqual(await pixels(page, "map"), whole);
  const zoomed = await ticks(page, "memory");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await settle(page);
  assert.notDeepEqual(await ticks(page, "memory"), zoomed);
  const heights = () => page.locator("#map .plot svg g:nth-of-type(2) .tick text").allTextContents();
  const low = await heights();
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowUp");
  await settle(page);
  assert.notDeepEqual(await heights(), low);
  await page.keyboard.press("0");
  await settle(page);
  assert.deepEqual(await ticks(page, "memory"), wholeTicks);
  await page.mouse.move(5, 5);
  await settle(page);
  assert.equal(await pixels(page, "map"), whole);
  await page.keyboard.press("+");
  await settle(page);
  assert.notDeepEqual(await ticks(page, "memory"), wholeTicks);
  await canvas.dblclick();
  await settle(page);
  assert.deepEqual(await ticks(page, "memory"), wholeTicks);
  await close(page);
});

test("search finds by op, number, kind and decision, and fades the rest", async () => {
  const page = await open("resnet50");
  await surface(page, "map");
  const before = await pixels(page, "map");
  const count = async (text) => {
    await page.fill("#map-search", text);
    await settle(page);
    return Number((await page.locator("#map-count").innerText()).replace(/[^\d]/g, ""));
  };
  assert.ok(await count("conv") > 10);
  assert.notEqual(await pixels(page, "map"), before);
  assert.ok(await count("swapped") > 0);
  assert.ok(await count("persistent") > 100);
  assert.equal(await count("no such thing"), 0);
  const id = await page.locator(".body .grid").first().locator("div").first().innerText();
  assert.ok(await count(id) >= 1);
  await page.fill("#map-search", "");
  await page.mouse.move(5, 5);
  await settle(page);
  assert.equal(await pixels(page, "map"), before);
  await page.click("[data-colouring=kind]");
  await settle(page);
  assert.notEqual(await pixels(page, "map"), before);
  await close(page);
});

test("the table sorts, filters and leads to the map", async () => {
  const page = await open("resnet50");
  await surface(page, "map");
  const whole = await ticks(page, "map");
  const column = (k) => page.locator(".body .grid").evaluateAll((rows, n) => rows.slice(0, 8).map((row) => row.children[n].innerText), k);
  const size = (text) => { const [n, unit] = text.split(" "); return Number(n) * 1024 ** ["B", "KiB", "MiB", "GiB"].indexOf(unit); };
  const descending = (await column(3)).map(size);
  assert.deepEqual(descending, [...descending].sort((a, b) => b - a));
  await page.click("[data-key=size] button");
  const ascending = (await column(3)).map(size);
  assert.deepEqual(ascending, [...ascending].sort((a, b) => a - b));
  assert.ok(ascending[0] < descending[0]);
  assert.equal(await page.locator("[data-key=size]").getAttribute("aria-sort"), "ascending");
  await page.click("[data-key=cost] button");
  await page.selectOption("#decision-choice", "2");
  for (const choice of await column(5)) assert.equal(choice, "recomputed");
  for (const words of await column(7)) assert.match(words, /^Dropped: running \d+ ops? again takes/);
  const status = await page.locator("#decisions .count").innerText();
  assert.match(status, /^[\d,]+ of [\d,]+ variables/);
  await page.fill("#decision-filter", "no such variable");
  assert.match(await page.locator("#decisions .count").innerText(), /^0 of /);
  await page.fill("#decision-filter", "");
  await page.locator(".body .grid").first().click();
  await settle(page);
  assert.notDeepEqual(await ticks(page, "map"), whole);
  await close(page);
});

test("keyboard alone reaches charts and table; charts have a text alternative", async () => {
  const page = await open("resnet50");
  const reached = [];
  for (let k = 0; k < 45; ++k) {
    await page.keyboard.press("Tab");
    reached.push(await page.evaluate(() => document.activeElement.getAttribute("aria-label") || document.activeElement.textContent.slice(0, 30)));
  }
  for (const label of ["Memory over time", "Address map: time across, addresses up", "Queues over time", "Decisions", "Search the address map"]) {
    assert.ok(reached.includes(label), `${label} in ${reached}`);
  }
  await page.locator("#memory .plot").focus();
  await page.keyboard.press(".");
  const first = await tipText(page);
  await page.keyboard.press(".");
  assert.notEqual(await tipText(page), first);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#tip").isHidden(), true);
  for (const id of ["memory", "map", "lanes"]) {
    await page.locator(`#${id} summary`).click();
    await page.locator(`#${id} details table tr`).nth(2).waitFor();
  }
  await close(page);
});

test("a run shows what was measured below what was predicted", { skip: !has("run") }, async () => {
  const page = await open("run");
  const labels = await page.locator("#lanes .plot svg text").allTextContents();
  assert.ok(labels.indexOf("predicted") >= 0 && labels.indexOf("measured") > labels.indexOf("predicted"), String(labels));
  await close(page);
});

test("a run's memory is drawn at measured times, and the page says so", { skip: !has("run") }, async () => {
  const page = await open("run");
  const { iteration_ns_measured: iteration, iterations_together: laps } = figuresOf("run");
  for (const id of ["memory", "map"]) assert.match(await page.locator(`#${id} .caption`).first().innerText(), /at measured times/);
  const milliseconds = (text) => { const [number, unit] = text.split(" "); return Number(number) * { ns: 1e-6, µs: 1e-3, ms: 1, s: 1e3 }[unit]; };
  await page.locator("#memory summary").click();
  await page.locator("#memory details tbody tr").nth(19).waitFor();
  const begins = await page.locator("#memory details tbody tr td:first-child").allTextContents();
  const last = 0.95 * laps * iteration / 1e6;
  assert.ok(Math.abs(milliseconds(begins[19]) - last) < 0.01 * last, `${begins[19]} of ${last} ms`);
  // Keys and pointer find what is there in those times.
  await page.locator("#memory .plot").focus();
  await page.keyboard.press(".");
  assert.match(await tipText(page), /op 0 /);
  const middle = await surface(page, "map");
  await page.mouse.move(middle.box.x + middle.box.width / 2, middle.box.y + middle.box.height - 3);
  assert.match(await tipText(page), /there/);
  await close(page);

  const predicted = await open("resnet50");
  for (const id of ["memory", "map"]) assert.match(await predicted.locator(`#${id} .caption`).first().innerText(), /at predicted times/);
  await close(predicted);
});

test("a curve has its planners, the bound and the chosen point", async () => {
  const page = await open("resnet50");
  const section = page.locator("#curve-section");
  assert.equal(await section.count(), 1);
  await section.scrollIntoViewIfNeeded();
  assert.match(await section.evaluate((e) => e.textContent), /this plan, [^]*bound: no plan is below/);
  assert.ok(await section.locator("path.point").count() > 3);
  await section.locator("path.point").last().hover();
  assert.match(await tipText(page), /overhead/);
  await close(page);
});

test("two plans stand side by side and can be switched", { skip: !has("compare") }, async () => {
  const page = await open("compare");
  const embedded = await page.locator("#figures").evaluate((e) => JSON.parse(e.textContent));
  assert.equal(embedded.length, 2);
  assert.equal(await page.locator("#compare .plot").count(), 4);
  await page.click("#subject-1");
  assert.equal(await headline(page), embedded[1].headline);
  await close(page);
});

test("hostile names show as text", async () => {
  const page = await open("hostile");
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator("img, iframe, main script").count(), 0);
  const makers = await page.locator(".body .grid").evaluateAll((rows) => rows.map((row) => row.children[1].innerText));
  assert.ok(makers.some((text) => text.includes("<img")), String(makers));
  assert.ok(makers.some((text) => text.includes("</script>")), String(makers));
  assert.ok(makers.some((text) => text.includes("10,000 characters")), String(makers));
  const memory = await surface(page, "memory");
  for (let k = 1; k < 12; ++k) await page.mouse.move(memory.box.x + memory.box.width * k / 12, memory.box.y + 80);
  const map = await surface(page, "map");
  for (let k = 1; k < 12; ++k) await page.mouse.move(map.box.x + map.box.width * k / 12, map.box.y + map.box.height - 10 * k);
  await close(page);
});

test("light and dark follow the system and the switch; nothing is wider than the page", async () => {
  for (const name of reports) {
    for (const width of [1280, 1920]) {
      for (const scheme of ["light", "dark"]) {
        const page = await open(name, { width, scheme });
        assert.equal(await page.locator("html").getAttribute("data-theme"), scheme);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} at ${width}`);
        if (screenshots) {
          await settle(page);
          await page.screenshot({ path: path.join(screenshots, `${name}-${width}-${scheme}.png`), fullPage: true });
        }
        if (width === 1280) {
          await page.click("#theme");
          assert.equal(await page.locator("html").getAttribute("data-theme"), scheme === "dark" ? "light" : "dark");
        }
        await close(page);
      }
    }
  }
});

/** Texts of charts that lie on each other or beyond their section, and headings of columns that are cut. */
function badTexts() {
  const found = [];
  for (const svg of document.querySelectorAll(".plot svg")) {
    const card = svg.closest("section").getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].map((e) => ({ text: e.textContent, box: e.getBoundingClientRect() })).filter((t) => t.box.width > 0);
    texts.forEach(({ text, box }, k) => {
      if (box.left < card.left || box.right > card.right) found.push(`beyond the card: ${text}`);
      for (const other of texts.slice(k + 1)) {
        const across = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
        const down = Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top);
        // Where two axes meet, boxes of letters touch at a corner.
        if (across > 8 && down > 0.5) found.push(`${text} on ${other.text}`);
      }
    });
  }
  for (const button of document.querySelectorAll(".head button")) if (button.scrollWidth > button.clientWidth) found.push(`cut: ${button.textContent}`);
  return found;
}

test("no label lies on another or is cut", async () => {
  for (const name of reports) {
    for (const width of [1024, 1280, 1920]) {
      const page = await open(name, { width });
      await settle(page);
      assert.deepEqual(await page.evaluate(badTexts), [], `${name} at ${width}`);
      await close(page);
    }
  }
});

for (const name of ["resnet50", "large", "many"].filter(has)) {
  test(`benchmark of ${name}: first paint, and frames while the address map is panned`, async () => {
    const page = await open(name);
    const times = await page.evaluate(() => ({
      paint: performance.getEntriesByType("paint").find((p) => p.name === "first-contentful-paint")?.startTime,
      loaded: performance.timing.loadEventEnd - performance.timing.navigationStart,
      ready: performance.now(),
    }));
    const { canvas, box } = await surface(page, "map");
    await canvas.click();
    await page.mouse.wheel(0, -500);
    await settle(page);
    // A drag that moves at every frame, so that every frame is drawn anew.
    await page.mouse.down();
    const frames = await page.evaluate(({ x, y }) => new Promise((done) => {
      const times = [];
      let last = 0;
      let k = 0;
      const tick = (now) => {
        if (last > 0) times.push(now - last);
        last = now;
        if (++k > 120) return done(times.sort((a, b) => a - b));
        window.dispatchEvent(new MouseEvent("mousemove", { clientX: x + 250 * Math.sin(k / 12), clientY: y + 60 * Math.cos(k / 12), view: window, bubbles: true }));
        requestAnimationFrame(tick);
      };
      requestAnimationFrame(tick);
    }), { x: box.x + box.width / 2, y: box.y + box.height / 2 });
    await page.mouse.up();
    const at = (share) => frames[Math.floor(share * (frames.length - 1))].toFixed(1);
    const size = fs.statSync(path.join(folder, `${name}.html`)).size;
    const { residencies } = figuresOf(name);
    console.log(`${name}: ${(size / 1e6).toFixed(2)} MB, ${residencies} rectangles; first paint ${times.paint?.toFixed(0)} ms, charts there after at most ${times.ready.toFixed(0)} ms; panning: ${frames.length} frames, median ${at(0.5)} ms, 90 % within ${at(0.9)} ms`);
    assert.ok(size < 5e6);
    await close(page);
  });
}

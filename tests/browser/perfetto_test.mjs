// SPDX-License-Identifier: Apache-2.0
// What Perfetto makes of "plimsoll report --format perfetto": every track, slice, arrow and counter
// has to arrive, at its time, without an error. scripts/test_report.sh makes the traces and runs this.
//
//   REPORTS=folder PERFETTO=folder node --test perfetto_test.mjs
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { importTrace } from "./perfetto.mjs";

const folder = process.env.REPORTS;
const fileOf = (name) => path.join(folder, `${name}.perfetto.json`);
const figuresOf = (name) => JSON.parse(fs.readFileSync(path.join(folder, `${name}.json`), "utf8"));
const ns = (microseconds) => Math.round(1000 * microseconds);

/** Collects events by a key, in the order of the keys. */
function collect(events, key, start, add) {
  const found = new Map();
  for (const event of events) found.set(key(event), add(found.get(key(event)) || start, event));
  return Object.fromEntries([...found].sort(([a], [b]) => a < b ? -1 : 1));
}
const keyed = (rows) => Object.fromEntries(rows.map(({ key, ...row }) => [key, row]).sort(([a], [b]) => a < b ? -1 : 1));

const SLICES = "select pid || ' ' || tid as key, count(*) as count, min(ts) as first, sum(dur) as busy from slice"
  + " join thread_track on slice.track_id = thread_track.id join thread using (utid) join process using (upid) group by utid";
const COUNTERS = "select pid || ' ' || track.name as key, count(*) as count, max(ts) as last, max(value) as most from counter"
  + " join process_counter_track as track on counter.track_id = track.id join process using (upid) group by track.id";
const TRACKS = "select pid, thread.name as thread, process.name as process from thread_track join thread using (utid) join process using (upid) order by pid, tid";

for (const name of ["resnet50", "large", "run", "trace", "hostile"]) {
  test(`${name}: Perfetto imports all of it`, async () => {
    const ask = await importTrace(process.env.PERFETTO, fileOf(name));
    const events = JSON.parse(fs.readFileSync(fileOf(name), "utf8")).traceEvents;
    const figures = figuresOf(name);
    const of = (phase) => events.filter(({ ph }) => ph === phase);

    assert.deepEqual(await ask("select name, value from stats where value != 0 and severity != 'info'"), []);
    assert.deepEqual(keyed(await ask(SLICES)), collect(of("X"), ({ pid, tid }) => `${pid} ${tid}`, { count: 0, first: Infinity, busy: 0 },
      (all, { ts, dur }) => ({ count: all.count + 1, first: Math.min(all.first, ns(ts)), busy: all.busy + ns(dur) })));
    // Perfetto drops slices that overlap, and says so above; those within others are a level deeper.
    assert.deepEqual(await ask("select max(depth) as depth from slice"), [{ depth: 0 }]);
    assert.deepEqual(keyed(await ask(COUNTERS)), collect(of("C"), (event) => `${event.pid} ${event.name} bytes`, { count: 0, last: 0, most: 0 },
      (all, { ts, args }) => ({ count: all.count + 1, last: Math.max(all.last, ns(ts)), most: Math.max(all.most, args.bytes) })));
    assert.deepEqual(await ask("select count(*) as count from flow"), [{ count: of("s").length }]);

    const tracks = await ask(TRACKS);
    const processes = figures.iteration_ns_measured === null ? ["predicted"] : ["predicted", "measured"];
    processes.forEach((process, k) => {
      const threads = tracks.filter(({ pid }) => pid === k + 1);
      assert.ok(threads.every((track) => track.process === `${figures.name}, ${process}`), process);
      assert.deepEqual(threads.map(({ thread }) => thread).filter((thread) => thread !== "stalls"),
        figures.copies > 0 ? ["compute", "copy-out", "copy-in"] : ["compute"]);
    });
    const slices = (category) => of("X").filter(({ cat }) => cat.startsWith(category)).length;
    assert.equal(slices("compute"), processes.length * (figures.ops + figures.replays));
    assert.equal(slices("copy-"), processes.length * figures.copies);
    console.log(`${name}: ${of("X").length} slices on ${tracks.length} tracks, ${of("s").length} arrows, ${of("C").length} counter values`);
  });
}

test("names arrive as they are", async () => {
  const ask = await importTrace(process.env.PERFETTO, fileOf("hostile"));
  const names = (await ask("select distinct name from slice")).map(({ name }) => name);
  for (const name of ["<img_src=x_onerror=window.hacked=1>", "&lt;b&gt;\"quoted'", "\u202eevil", "x".repeat(10000)]) assert.ok(names.includes(name), name);
});

test("a run's iterations begin together, and its counters last as long as they do", async () => {
  const ask = await importTrace(process.env.PERFETTO, fileOf("run"));
  const figures = figuresOf("run");
  const begin = await ask("select min(ts) as ts from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) where thread.name = 'compute' group by utid");
  assert.equal(begin.length, 2);
  assert.equal(begin[0].ts, begin[1].ts);
  const limit = await ask("select max(ts) as ts from counter join process_counter_track as track on counter.track_id = track.id join process using (upid) where track.name = 'limit bytes' group by pid order by pid");
  const { iterations_together: laps } = figures;
  assert.deepEqual(limit.map(({ ts }) => Math.trunc((ts - begin[0].ts) / laps)), [figures.iteration_ns, figures.iteration_ns_measured]);
});

// SPDX-License-Identifier: Apache-2.0
// Perfetto's own trace processor, the one that ui.perfetto.dev asks, in this process.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

/** Stands in for the network, from which a browser would get the WebAssembly. */
function requestsFrom(folder) {
  return class {
    open(_, url) { this.file = path.join(folder, path.basename(url)); }
    send() { this.response = new Uint8Array(fs.readFileSync(this.file)).buffer; }
  };
}

/** Starts a trace processor; `folder` has trace_processor.wasm and what drives it. */
async function start(folder) {
  const { EngineBase } = await import(pathToFileURL(path.join(folder, "engine.mjs")).href);
  // The code of a web worker; the folder has no memory64 variant.
  const code = fs.readFileSync(path.join(folder, "engine_bundle.node.js"), "utf8").replace("= hasMemory64Support();", "= false;");
  const worker = { location: { href: "" } };
  const silent = { log() {}, warn() {}, error: console.error };
  new Function("self", "WorkerGlobalScope", "XMLHttpRequest", "console", code)(worker, Object, requestsFrom(folder), silent);
  await new Promise(setImmediate);
  const port = {};
  class Engine extends EngineBase {
    rpcSendRequestBytes(data) { port.onmessage({ data }); }
  }
  const engine = new Engine();
  port.postMessage = (data) => engine.onRpcResponseBytes(data);
  worker.onmessage({ data: port });
  return engine;
}

/** Imports a trace. Returns a function that answers queries: rows of numbers and texts. */
export async function importTrace(folder, file) {
  const engine = await start(folder);
  await engine.parse(new Uint8Array(fs.readFileSync(file)));
  await engine.notifyEof();
  return async (sql) => {
    const { warn } = console;
    console.warn = () => {};  // It says of each answer that it has a field which the decoder does not know.
    try {
      const result = await engine.query(sql);
      const value = (x) => typeof x === "bigint" ? Number(x) : x;
      const rows = [];
      for (const row = result.iter({}); row.valid(); row.next()) rows.push(Object.fromEntries(result.columns().map((name) => [name, value(row.get(name))])));
      return rows;
    } finally {
      console.warn = warn;
    }
  };
}

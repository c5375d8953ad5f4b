// SPDX-License-Identifier: Apache-2.0
const QUEUES = ["compute", "copy-out", "copy-in"];
const KINDS = ["persistent", "activation", "gradient", "temporary", "workspace"];
const PHASES = ["forward", "backward", "update"];
const CHOICES = ["kept", "swapped", "recomputed", "both"];
const STALL_REASONS = ["waits for data", "waits for memory", "waits for nothing that the plan names"];
const STALL_LETTERS = ["D", "M", "?"];

/** As FormatBytes() in base/bytes.h. */
function formatBytes(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let unit = 0;
  let value = bytes;
  while (Math.abs(value) >= 1024 && unit + 1 < units.length) { value /= 1024; ++unit; }
  return unit === 0 ? `${value} B` : `${value.toFixed(2)} ${units[unit]}`;
}

function formatTime(ns) {
  const size = Math.abs(ns);
  if (size >= 1e9) return `${(ns / 1e9).toFixed(2)} s`;
  if (size >= 1e6) return `${(ns / 1e6).toFixed(size >= 1e8 ? 1 : 2)} ms`;
  if (size >= 1e3) return `${(ns / 1e3).toFixed(1)} µs`;
  return `${Math.round(ns)} ns`;
}

function formatPercent(fraction) { return `${(100 * fraction).toFixed(1)} %`; }
function formatCount(count) { return count.toLocaleString("en-US"); }

/** Keeps numbers and their units on one line. */
function keepUnits(text) { return text.replace(/(\d) (%|[KMGTPE]?i?B\b|[mnµ]?s\b)/g, "$1\u00a0$2"); }

/** Makes any text one that can be looked at: control characters as pictures, long ones cut and said so. */
function showText(text, most = 80) {
  const seen = String(text).replace(/[\u0000-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(/\u007f/g, "\u2421").replace(/[\u0080-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g, "\ufffd");
  return seen.length <= most ? seen : `${seen.slice(0, most)}… (${formatCount(seen.length)} characters)`;
}

/** Ticks at round binary sizes, about so many. */
function byteTicks(low, high, count) {
  let step = 1;
  while ((high - low) / step > count) step *= 2;
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) ticks.push(tick);
  return ticks;
}

/** A tick as short as it can be said. */
function formatByteTick(bytes) {
  const text = formatBytes(bytes);
  return text.replace(/\.00 /, " ").replace(/(\.\d)0 /, "$1 ");
}

/** How times are written on an axis that shows so much of them. */
function timeTickFormat(span) {
  const [unit, name] = span > 2e9 ? [1e9, "s"] : span > 2e6 ? [1e6, "ms"] : span > 2e3 ? [1e3, "µs"] : [1, "ns"];
  return (ns) => `${d3.format(",")(Math.round(ns / unit * 1e4) / 1e4)} ${name}`;
}

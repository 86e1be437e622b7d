// The dashboard: figures of the running engine, and a map of its experts. Asks the server while
// somebody looks: not in a hidden tab, not while the panel is closed.

import * as api from "./api.js";
import { element } from "./dom.js";

const EVERY_MS = 800;
const CELL = 12;
// Of a figure that is shown, the part that is new.
const FRESH = 0.4;
// What is left of an expert's heat at the next look.
const COOLING = 0.85;
const POINTS = 60;
// Memories as `/motley/dashboard` calls them, with words for people.
const WORDS = {
  disk: "SSD",
  memory: "RAM",
  device: "GPU",
  memory_and_device: "RAM and GPU",
  npu: "NPU",
  remote: "other machine",
};

export function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; count >= 1024 && unit < units.length - 1; unit += 1) count /= 1024;
  return count.toFixed(unit && count < 100 ? 1 : 0) + " " + units[unit];
}

const FIGURES = ["rate", "hit", "read", "prompt", "active", "waiting", "reused", "memory", "place", "kv", "kept"];

const id = name => document.getElementById(name);
const percent = (part, whole) => (whole ? (100 * part) / whole : 0);

function figure(name, text) {
  if (id(name).textContent !== text) id(name).textContent = text;
}

export class Dashboard {
  // `locked` is called when the server asks for a key.
  constructor(panel, locked) {
    this.panel = panel;
    this.locked = locked;
    this.model = "";
    this.before = null;
    this.at = 0;
    this.rates = { tokens: 0, prompt: 0, read: 0 };
    this.points = [];
    this.heat = [];
    this.timer = 0;
    document.addEventListener("visibilitychange", () => this.look());
  }

  // Shows another model from now on.
  of(model) {
    if (this.model !== model) this.forget();
    this.model = model;
    this.look();
  }

  // What was shown was of another model.
  forget() {
    this.before = null;
    this.points = [];
    this.rates = { tokens: 0, prompt: 0, read: 0 };
    for (const name of FIGURES) figure(name, "–");
    for (const bar of ["memorybar", "kvbar"]) id(bar).style.width = "0";
    for (const list of ["shares", "legend", "workers"]) id(list).replaceChildren();
    // Of no size, so that the next map is begun anew.
    id("heat").width = 0;
    this.line();
  }

  get watched() {
    return !document.hidden && this.panel.checkVisibility({ visibilityProperty: true });
  }

  // Looks now and again, and asks the server if it is watched.
  async look() {
    clearTimeout(this.timer);
    const may = !this.watched || (await this.ask());
    clearTimeout(this.timer);
    if (may) this.timer = setTimeout(() => this.look(), EVERY_MS);
  }

  // Whether asking again makes sense: not without a key.
  async ask() {
    try {
      this.show(await api.get("motley/dashboard" + api.ofModel(this.model)), performance.now());
      this.panel.classList.remove("away");
    } catch (error) {
      this.panel.classList.add("away");
      if (error.status === 404) figure("place", "not loaded: the first question loads it");
      if (error.locked) this.locked();
      return !error.locked;
    }
    return true;
  }

  show(now, time) {
    const seconds = (time - this.at) / 1000;
    // After a pause, or a new start of the server, differences say nothing.
    const follows = this.before !== null && seconds < 5 && now.steps >= this.before.steps;
    if (follows) this.measure(now, seconds);
    this.figures(now);
    this.bars(now);
    this.places(now);
    this.workers(now);
    this.map(now, follows ? this.before : null);
    this.before = now;
    this.at = time;
  }

  measure(now, seconds) {
    const since = name => Math.max(0, ((now[name] ?? 0) - (this.before[name] ?? 0)) / seconds);
    const mixed = (old, fresh) => (fresh === 0 && old < 0.05 ? 0 : (1 - FRESH) * old + FRESH * fresh);
    this.rates.tokens = mixed(this.rates.tokens, since("answer_tokens"));
    this.rates.prompt = mixed(this.rates.prompt, since("prompt_tokens"));
    this.rates.read = mixed(this.rates.read, since("read_bytes"));
    this.points = [...this.points, this.rates.tokens].slice(-POINTS);
  }

  figures(now) {
    const disk = now.experts_in === "disk";
    figure("rate", this.rates.tokens < 0.05 ? "0" : this.rates.tokens.toFixed(1));
    figure("hit", !disk ? "100 %" : now.lookups ? Math.round(percent(now.hits, now.lookups)) + " %" : "–");
    figure("read", disk ? bytes(this.rates.read) : "–");
    figure("prompt", this.rates.prompt.toFixed(0));
    figure("active", String(now.requests_active));
    figure("waiting", String(now.requests_waiting));
    figure("reused", String(now.reused_tokens));
    this.line();
  }

  // Tokens per second of the last minute.
  line() {
    const most = Math.max(1, ...this.points), from = POINTS - this.points.length;
    const point = (rate, at) => `${((from + at) * 100) / (POINTS - 1)},${(23 - (22 * rate) / most).toFixed(2)}`;
    id("line").setAttribute("points", this.points.map(point).join(" "));
  }

  bars(now) {
    const { resident_bytes: used, budget_bytes: budget } = now;
    figure("memory", used ? bytes(used) + (budget ? " of " + bytes(budget) : "") : "–");
    id("memorybar").parentNode.hidden = !budget;
    id("memorybar").style.width = Math.min(100, percent(used, budget)) + "%";
    const read = "experts come from disk when needed, " + bytes(now.read_bytes ?? 0) + " read so far";
    figure("place", now.experts_in === "disk" ? read : "model of " + bytes(now.model_bytes) + ", all in memory");
    figure("kv", now.kv_cells_used + " of " + now.kv_cells);
    id("kvbar").style.width = percent(now.kv_cells_used, now.kv_cells) + "%";
    figure("kept", now.prefixes_kept + " beginnings kept for later questions");
  }

  // How many experts each memory has.
  places(now) {
    const shares = now.memories.map(memory => {
      const part = element("i", { class: "of-" + memory.kind });
      part.style.flexGrow = String(memory.experts);
      return part;
    });
    id("shares").replaceChildren(...shares);
    const rows = now.memories.map(({ kind, experts }) =>
      element("li", { "data-kind": kind }, element("i", { class: "swatch of-" + kind }), WORDS[kind] ?? kind, element("b", {}, String(experts))));
    id("legend").replaceChildren(...rows);
    id("experts").hidden = !now.layers.length;
    id("dense").hidden = Boolean(now.layers.length);
    figure("shape", `${now.layers.length} layers × ${now.experts}, ${now.experts_per_token} per token`);
  }

  // Machines that compute experts, and what a request to each takes.
  workers(now) {
    const each = ({ exchange_us, requests }) => (requests ? (exchange_us / requests / 1000).toFixed(1) + " ms" : "–");
    const rows = now.workers.map(worker =>
      element("li", { class: worker.answers ? "" : "lost" }, worker.name,
        element("span", {}, worker.answers ? `${worker.rows} rows, ${each(worker)} each time` : "lost: computed here")));
    id("workers").replaceChildren(...rows);
    id("others").hidden = !rows.length;
  }

  // Brightness says how busy an expert was lately, colour where it is; a dot is on disk only.
  map(now, before) {
    const rows = now.layers.length, columns = now.experts, canvas = id("heat");
    if (!rows) return;
    if (canvas.width !== columns * CELL || canvas.height !== rows * CELL) {
      canvas.width = columns * CELL;
      canvas.height = rows * CELL;
      // Neither a line nor a tower, however many layers there are.
      canvas.style.aspectRatio = String(Math.min(4, Math.max(4 / 3, columns / rows)));
      this.heat = now.layers.map(() => new Float64Array(columns));
    }
    const style = getComputedStyle(this.panel);
    const colour = name => style.getPropertyValue(name).split(",").map(Number);
    const hues = new Map(now.memories.map(({ place, kind }) => [place, { kind, hue: colour("--" + kind) }]));
    const paint = canvas.getContext("2d");
    paint.clearRect(0, 0, canvas.width, canvas.height);
    now.layers.forEach((layer, row) => {
      this.warm(row, layer.counts, before?.layers[row]?.counts);
      this.paintRow(paint, row, layer.places, hues, colour("--cold"));
    });
  }

  warm(row, counts, before) {
    const heat = this.heat[row];
    counts.forEach((count, expert) => {
      heat[expert] = heat[expert] * COOLING + (before ? count - before[expert] : 0);
    });
  }

  paintRow(paint, row, places, hues, cold) {
    const heat = this.heat[row], most = Math.max(1e-9, ...heat);
    heat.forEach((warmth, expert) => {
      const { kind, hue } = hues.get(places?.[expert] ?? "1");
      const share = 0.22 + 0.78 * Math.sqrt(warmth / most);
      const mixed = cold.map((from, part) => Math.round(from + (hue[part] - from) * share));
      paint.fillStyle = `rgb(${mixed})`;
      const dot = kind === "disk" ? CELL / 3 : 0, size = dot ? CELL / 3 : CELL - 2;
      paint.fillRect(expert * CELL + dot, row * CELL + dot, size, size);
    });
  }
}

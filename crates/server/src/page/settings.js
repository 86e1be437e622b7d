// What a person has set, kept in this browser. What is left empty is the server's choice. The key
// is kept until the tab is closed, or longer if the person says so.

const NAME = "motley.settings";
const KEY = "motley.key";
const THEME = "motley.theme";
const NUMBERS = ["temperature", "top_p", "max_tokens"];
const FIELDS = [...NUMBERS, "system", "tools", "thinking", "thoughts"];

// Without storage, settings last as long as the page.
function read(store, name) {
  try {
    return store().getItem(name) ?? "";
  } catch {
    return "";
  }
}

function write(store, name, value) {
  try {
    if (value) store().setItem(name, value);
    else store().removeItem(name);
  } catch {
    // Full, or not allowed.
  }
}

const local = () => localStorage;
const session = () => sessionStorage;

export class Settings {
  constructor() {
    this.values = {};
    this.defaults = {};
    this.key = read(session, KEY) || read(local, KEY);
    this.keepsKey = read(local, KEY) !== "";
    try {
      Object.assign(this.values, JSON.parse(read(local, NAME) || "{}"));
    } catch {
      // Somebody else's; begun anew.
    }
  }

  get(name) {
    const value = this.values[name];
    return typeof value === "string" ? value : "";
  }

  set(name, value) {
    this.values[name] = value;
    write(local, NAME, JSON.stringify(this.values));
  }

  setKey(key, keep) {
    this.key = key;
    this.keepsKey = keep && key !== "";
    write(session, KEY, key);
    write(local, KEY, this.keepsKey ? key : "");
  }

  // What goes into every request.
  request() {
    const { temperature, top_k, top_p, min_p, repeat_penalty } = this.defaults;
    const body = { temperature, top_k, top_p, min_p, repeat_penalty };
    for (const name of NUMBERS) if (this.get(name) !== "") body[name] = Number(this.get(name));
    if (this.get("thinking")) body.chat_template_kwargs = { enable_thinking: this.get("thinking") === "on" };
    const tools = readTools(this.get("tools"));
    if (tools.length) body.tools = tools;
    return body;
  }
}

// Functions as OpenAI lists them, or without the wrapping; throws where the text is no such list.
export function readTools(text) {
  if (!text.trim()) return [];
  const found = JSON.parse(text);
  const all = Array.isArray(found) ? found : [found];
  return all.map(tool => {
    const wrapped = tool?.function ? tool : { type: "function", function: tool };
    if (typeof wrapped.function?.name !== "string") throw new Error("every tool needs a name");
    return wrapped;
  });
}

export function theme() {
  return read(local, THEME);
}

// "light", "dark", or "" for the system's.
export function setTheme(name) {
  write(local, THEME, name);
  dispatchEvent(new Event("themechange"));
}

// The dialog: shows what is set, and tells `changed` after it was saved.
export function settingsDialog(settings, changed) {
  const dialog = document.getElementById("settings"), form = dialog.querySelector("form");
  const fields = form.elements, wrong = form.querySelector(".wrong");
  form.addEventListener("submit", event => {
    event.preventDefault();
    const problem = problemOf(fields.tools.value);
    wrong.textContent = problem;
    if (problem) return fields.tools.focus();
    for (const name of FIELDS) settings.set(name, fields[name].value.trim());
    settings.setKey(fields.key.value.trim(), fields.keep.checked);
    setTheme(fields.theme.value);
    dialog.close();
    changed();
  });
  form.querySelector(".reset").addEventListener("click", () => {
    for (const name of FIELDS) fields[name].value = "";
    fields.theme.value = "";
    wrong.textContent = "";
  });
  form.querySelector(".cancel").addEventListener("click", () => dialog.close());
  return () => {
    for (const name of FIELDS) fields[name].value = settings.get(name);
    for (const name of NUMBERS) fields[name].placeholder = placeholder(settings.defaults, name);
    fields.key.value = settings.key;
    fields.keep.checked = settings.keepsKey;
    fields.theme.value = theme();
    wrong.textContent = "";
    dialog.showModal();
  };
}

function placeholder(defaults, name) {
  if (name === "max_tokens") return "until the end";
  const value = defaults[name];
  return value === undefined ? "" : String(Math.round(value * 1000) / 1000);
}

function problemOf(tools) {
  try {
    readTools(tools);
    return "";
  } catch (error) {
    return "Tools: " + error.message;
  }
}

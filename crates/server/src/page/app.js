// The page's beginning: finds its parts, joins them, and hands keys and clicks on.

import * as api from "./api.js";
import * as history from "./history.js";
import { Chat } from "./chat.js";
import { Dashboard } from "./dashboard.js";
import { element } from "./dom.js";
import { Settings, setTheme, settingsDialog } from "./settings.js";

const id = name => document.getElementById(name);
const settings = new Settings();
api.useKey(settings.key);

const dashboard = new Dashboard(id("dashboard"), () => lock());
const chat = new Chat(id("log"), settings, {
  changed: () => showHistory(),
  running: showRunning,
  said: text => { id("said").textContent = text; },
  locked: () => lock(),
});
const openSettings = settingsDialog(settings, () => {
  api.useKey(settings.key);
  chat.draw();
  begin();
});

// Asks what the server offers, and shows it.
async function begin() {
  try {
    const models = await api.get("v1/models");
    showModels(models.data.map(model => model.id));
    await useModel();
    id("version").textContent = "motley " + settings.defaults.version;
    id("lock").hidden = true;
  } catch (error) {
    if (error.locked) lock();
    else setTimeout(begin, 3000);
  }
}

function lock() {
  id("lock").hidden = false;
  id("wrongkey").hidden = !settings.key;
}

function showModels(names) {
  const chosen = settings.get("model");
  id("model").replaceChildren(...names.map(name => element("option", { value: name, selected: name === chosen }, name)));
  // A model that is gone is not asked for.
  if (!names.includes(chosen)) settings.set("model", names[0] ?? "");
}

// Shows what the chosen model begins with, and what it does.
async function useModel() {
  const model = settings.get("model");
  settings.defaults = await api.get("motley/settings" + api.ofModel(model));
  dashboard.of(model);
}

function showRunning(running) {
  id("send").textContent = running ? "Stop" : "Send";
  id("send").classList.toggle("stops", running);
}

// Conversations, the latest first.
function showHistory() {
  const rows = history.list().map(entry => {
    const open = element("button", { type: "button", class: "open", title: entry.title, onclick: () => openChat(entry.id) }, entry.title);
    const rename = iconButton("✎", "Rename “" + entry.title + "”", () => renameChat(entry, row));
    const remove = iconButton("×", "Delete “" + entry.title + "”", () => removeChat(entry));
    const row = element("li", {}, open, rename, remove);
    if (entry.id === chat.current.id) open.setAttribute("aria-current", "true");
    return row;
  });
  id("chats").replaceChildren(...rows);
  id("nochats").hidden = rows.length > 0;
  id("export").disabled = id("clear").disabled = rows.length === 0;
}

function iconButton(sign, label, action) {
  return element("button", { type: "button", class: "icon", "aria-label": label, title: label, onclick: action }, sign);
}

function openChat(chatId) {
  const found = history.load(chatId);
  if (found) chat.open(found);
  showHistory();
  closeDrawers();
  id("text").focus();
}

function newChat() {
  chat.open(history.fresh());
  showHistory();
  closeDrawers();
  id("text").focus();
}

function renameChat(entry, row) {
  const box = element("input", { "aria-label": "Name", maxlength: "60" });
  box.value = entry.title;
  let done = false;
  const finish = keep => {
    if (done) return;
    done = true;
    if (keep) history.rename(entry.id, box.value);
    if (keep && entry.id === chat.current.id) chat.current.title = history.load(entry.id)?.title ?? "";
    showHistory();
  };
  box.addEventListener("keydown", event => {
    if (event.key === "Enter") finish(true);
    if (event.key === "Escape") finish(false);
    event.stopPropagation();
  });
  box.addEventListener("blur", () => finish(true));
  row.replaceChildren(box);
  box.select();
}

function removeChat(entry) {
  history.remove(entry.id);
  if (entry.id === chat.current.id) newChat();
  showHistory();
}

function removeChats() {
  if (!confirm("Delete all conversations from this browser?")) return;
  history.removeAll();
  newChat();
}

function exportChats() {
  const address = URL.createObjectURL(new Blob([history.exported()], { type: "application/json" }));
  const link = element("a", { href: address, download: "motley-chats.json" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// The panels at the sides: drawers on small screens.
const root = document.documentElement;
const isDrawer = name => matchMedia(name === "sidebar" ? "(max-width: 760px)" : "(max-width: 1120px)").matches;
const isShown = name => (isDrawer(name) ? root.dataset.drawer === name : !root.classList.contains("no-" + name));

function toggle(name) {
  if (isDrawer(name)) root.dataset.drawer = isShown(name) ? "" : name;
  else root.classList.toggle("no-" + name);
  showPanels();
  dashboard.look();
}

function closeDrawers() {
  root.dataset.drawer = "";
  showPanels();
}

function showPanels() {
  for (const name of ["sidebar", "dashboard"]) id("toggle-" + name).setAttribute("aria-expanded", String(isShown(name)));
}

function switchTheme() {
  setTheme(root.dataset.theme === "dark" ? "light" : "dark");
}

id("form").addEventListener("submit", event => {
  event.preventDefault();
  if (chat.running) return chat.stop();
  const text = id("text").value.trim();
  if (!text) return;
  id("text").value = "";
  chat.ask(text);
});
id("text").addEventListener("keydown", event => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  if (!chat.running) id("form").requestSubmit();
});
document.addEventListener("keydown", event => {
  if (event.key !== "Escape" || id("settings").open) return;
  if (root.dataset.drawer) closeDrawers();
  else chat.stop();
});
id("lock").addEventListener("submit", event => {
  event.preventDefault();
  settings.setKey(id("key").value.trim(), settings.keepsKey);
  api.useKey(settings.key);
  begin();
});
id("log").addEventListener("click", event => {
  const example = event.target.closest(".example");
  if (!example) return;
  id("text").value = example.textContent;
  id("text").focus();
});
id("model").addEventListener("change", () => {
  settings.set("model", id("model").value);
  useModel().catch(begin);
});
id("new").addEventListener("click", newChat);
id("export").addEventListener("click", exportChats);
id("clear").addEventListener("click", removeChats);
id("theme").addEventListener("click", switchTheme);
id("gear").addEventListener("click", openSettings);
id("shade").addEventListener("click", closeDrawers);
id("close-dashboard").addEventListener("click", closeDrawers);
id("toggle-sidebar").addEventListener("click", () => toggle("sidebar"));
id("toggle-dashboard").addEventListener("click", () => toggle("dashboard"));
// Another tab has changed the history.
addEventListener("storage", showHistory);
addEventListener("resize", showPanels);
addEventListener("pagehide", () => history.noteOpen(chat.current.id));

chat.open(history.lastOpen() ?? history.fresh());
showHistory();
showPanels();
begin();

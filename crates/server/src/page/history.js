// Conversations in this browser: at most so many, the oldest go first. Nothing of them is sent
// anywhere but in the requests that continue them.
//
// `motley.chats` lists {id, title, changed}, the latest first; `motley.chat.ID` is one of them.

const CHATS_MAX = 200;
const LIST = "motley.chats";
const ONE = "motley.chat.";
const OPEN = "motley.open";
const TITLE_MAX = 60;

// Where there is no storage (private windows of some browsers), until the page is left.
const memory = new Map();

function read(name) {
  try {
    return JSON.parse(localStorage.getItem(name) ?? memory.get(name) ?? "null");
  } catch {
    return null;
  }
}

// Whether there was room.
function write(name, value) {
  const text = JSON.stringify(value);
  try {
    localStorage.setItem(name, text);
    return true;
  } catch (error) {
    if (error.name === "QuotaExceededError") return false;
    memory.set(name, text);
    return true;
  }
}

function forget(name) {
  memory.delete(name);
  try {
    localStorage.removeItem(name);
  } catch {
    // Not there either.
  }
}

export function list() {
  const found = read(LIST);
  return Array.isArray(found) ? found.filter(one => typeof one?.id === "string") : [];
}

export function load(id) {
  const chat = read(ONE + id);
  return Array.isArray(chat?.messages) ? chat : null;
}

export function fresh() {
  return { id: crypto.getRandomValues(new Uint32Array(2)).join("-"), title: "", messages: [] };
}

// Keeps a conversation as the latest; others go when there is no room.
export function save(chat) {
  const others = list().filter(one => one.id !== chat.id);
  const kept = others.slice(0, CHATS_MAX - 1);
  others.slice(kept.length).forEach(one => forget(ONE + one.id));
  while (!write(ONE + chat.id, chat) && kept.length) forget(ONE + kept.pop().id);
  const entry = { id: chat.id, title: title(chat), changed: Date.now() };
  while (!write(LIST, [entry, ...kept]) && kept.length) forget(ONE + kept.pop().id);
}

// What it is called: by its person, else by its first question.
export function title(chat) {
  if (chat.title) return chat.title;
  const question = chat.messages.find(message => message.role === "user")?.content ?? "";
  const line = question.trim().split("\n")[0];
  return line.length > TITLE_MAX ? line.slice(0, TITLE_MAX - 1) + "…" : line || "New chat";
}

export function rename(id, name) {
  const chat = load(id);
  if (!chat) return;
  chat.title = name.trim().slice(0, TITLE_MAX);
  write(ONE + id, chat);
  write(LIST, list().map(one => (one.id === id ? { ...one, title: title(chat) } : one)));
}

export function remove(id) {
  forget(ONE + id);
  write(LIST, list().filter(one => one.id !== id));
}

export function removeAll() {
  list().forEach(one => forget(ONE + one.id));
  forget(LIST);
}

// The conversation this tab showed when it was left.
export function lastOpen() {
  try {
    return load(sessionStorage.getItem(OPEN));
  } catch {
    return null;
  }
}

export function noteOpen(id) {
  try {
    sessionStorage.setItem(OPEN, id);
  } catch {
    // The next visit begins anew.
  }
}

// All conversations as one text.
export function exported() {
  const chats = list().map(one => ({ ...load(one.id), changed: new Date(one.changed).toISOString() }));
  return JSON.stringify({ format: "motley-chats", version: 1, chats }, null, 2);
}

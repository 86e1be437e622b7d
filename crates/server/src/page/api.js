// What the page asks the server for. Errors carry the server's words; `locked` ones ask for a key.

let key = "";

export function useKey(given) {
  key = given;
}

// The server refused, or did not answer.
export class ServerError extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }

  get locked() {
    return this.status === 401;
  }
}

// The JSON at a path.
export async function get(path) {
  return (await ask(path, {})).json();
}

// A path's question about one of several models.
export function ofModel(name) {
  return name ? "?model=" + encodeURIComponent(name) : "";
}

async function ask(path, options) {
  const headers = { ...options.headers, ...(key ? { Authorization: "Bearer " + key } : {}) };
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError("The server does not answer. Is it still running?");
  }
  if (!response.ok) throw new ServerError(await words(response), response.status);
  return response;
}

async function words(response) {
  const otherwise = "The server answered " + response.status + ".";
  try {
    return (await response.json()).error?.message ?? otherwise;
  } catch {
    return otherwise;
  }
}

// The chunks of a streamed answer.
export async function* chat(body, signal) {
  const headers = { "Content-Type": "application/json" };
  const response = await ask("v1/chat/completions", { method: "POST", headers, signal, body: JSON.stringify(body) });
  let whole = false;
  for await (const line of lines(response.body)) {
    if (!line.startsWith("data:")) continue;
    const data = line.slice(5).trim();
    whole ||= data === "[DONE]";
    if (data === "[DONE]") continue;
    const chunk = JSON.parse(data);
    if (chunk.error) throw new ServerError(chunk.error.message);
    yield chunk;
  }
  if (!whole) throw new ServerError("The connection ended before the answer did.");
}

async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read().catch(lost);
    if (done) break;
    const parts = (held + value).split("\n");
    held = parts.pop();
    yield* parts;
  }
  if (held) yield held;
}

function lost(error) {
  if (error.name === "AbortError") throw error;
  throw new ServerError("The connection to the server was lost.");
}

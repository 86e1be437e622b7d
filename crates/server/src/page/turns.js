// One turn of a conversation as elements: question, thoughts, answer, calls, figures. Decides
// nothing: what its buttons do is given to it.

import { copyButton, element, showMarkdown } from "./dom.js";

// A question.
export function questionTurn(message) {
  const text = element("div", { class: "bubble" }, message.content);
  const tools = element("div", { class: "tools" });
  return { node: element("article", { class: "turn user", "aria-label": "You" }, text, tools), tools };
}

// A question that is being changed; `done` gets the new text, or null.
export function editTurn(content, done) {
  const box = element("textarea", { "aria-label": "Your question", rows: "3" });
  box.value = content;
  const save = element("button", { class: "primary" }, "Ask again");
  const cancel = element("button", { type: "button", onclick: () => done(null) }, "Cancel");
  const form = element("form", { class: "turn edit" }, box, element("div", { class: "tools" }, cancel, save));
  form.addEventListener("submit", event => {
    event.preventDefault();
    if (box.value.trim()) done(box.value.trim());
  });
  form.addEventListener("keydown", event => {
    if (event.key === "Escape") done(null);
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.target === box) {
      event.preventDefault();
      form.requestSubmit();
    }
    event.stopPropagation();
  });
  return { node: form, box };
}

// An answer that grows: call `show` after every change of its message.
export class AnswerTurn {
  constructor(message, { openThoughts }) {
    this.message = message;
    this.thoughts = null;
    this.openThoughts = openThoughts;
    this.body = element("div", { class: "markdown" });
    this.calls = element("div", { class: "calls" });
    this.error = element("div", { class: "error", hidden: true });
    this.tools = element("div", { class: "tools" });
    this.node = element("article", { class: "turn assistant", "aria-label": "Answer" }, this.body, this.calls, this.error, this.tools);
  }

  // `running` while more comes.
  show(running) {
    const { content, thoughts, calls = [], error } = this.message;
    this.node.setAttribute("aria-busy", String(running));
    this.node.classList.toggle("waiting", running && !content && !thoughts && !calls.length);
    if (thoughts) this.showThoughts(thoughts, running && !content && !calls.length);
    showMarkdown(this.body, content);
    for (const call of calls.slice(this.calls.children.length)) this.calls.append(callCard(call));
    this.error.hidden = !error;
    this.error.textContent = error ?? "";
  }

  showThoughts(text, running) {
    if (!this.thoughts) {
      this.thoughts = element("details", { class: "thoughts", open: this.openThoughts }, element("summary"), element("div"));
      this.node.prepend(this.thoughts);
    }
    const [summary, body] = this.thoughts.children;
    summary.textContent = running ? "Thinking…" : "Thoughts";
    body.textContent = text.trim();
  }

  // What there is to do with it, and what it took.
  finish(buttons) {
    const { content, figures } = this.message;
    const copy = content ? [copyButton(() => content)] : [];
    const line = element("span", { class: "figures" }, figures ? figuresLine(figures) : "");
    this.tools.replaceChildren(...copy, ...buttons, line);
  }
}

function callCard(call) {
  const name = element("div", { class: "name" }, element("span", {}, "calls "), element("code", {}, call.function.name));
  return element("div", { class: "call", "data-id": call.id }, name, element("pre", { tabindex: "0" }, pretty(call.function.arguments)));
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

// Boxes for what the called functions gave; `done` gets a text for each call.
export function resultsForm(calls, done) {
  const rows = calls.map(call => {
    const box = element("textarea", { rows: "2", required: true, placeholder: "What it gave" });
    return { box, node: element("label", {}, "Result of " + call.function.name, box) };
  });
  const send = element("button", { class: "primary" }, calls.length > 1 ? "Send results" : "Send result");
  const form = element("form", { class: "results" }, ...rows.map(row => row.node), send);
  form.addEventListener("submit", event => {
    event.preventDefault();
    done(rows.map(row => row.box.value));
  });
  return form;
}

// What a called function gave, shown below the call.
export function resultTurn(message) {
  const pre = element("pre", { tabindex: "0" }, pretty(message.content));
  return element("article", { class: "turn result", "aria-label": "Result" }, element("span", {}, "result"), pre);
}

export function button(label, action) {
  return element("button", { type: "button", class: "quiet", onclick: action }, label);
}

// "42 tokens · 8.1 tokens/s · first after 0.4 s · 120 of 150 prompt tokens reused · stopped"
export function figuresLine(figures) {
  const { tokens, promptTokens, reusedTokens, firstMs, totalMs, ended } = figures;
  const rate = (1000 * (tokens - 1)) / (totalMs - firstMs);
  const parts = [
    tokens > 0 && tokens + (tokens === 1 ? " token" : " tokens"),
    tokens > 1 && Number.isFinite(rate) && rate.toFixed(1) + " tokens/s",
    firstMs > 0 && "first after " + (firstMs / 1000).toFixed(firstMs < 9950 ? 1 : 0) + " s",
    promptTokens > 0 && "prompt " + promptTokens + (reusedTokens ? ", " + reusedTokens + " reused" : ""),
    ended === "length" && "cut at the limit of tokens",
    ended === "stopped" && "stopped",
  ];
  return parts.filter(Boolean).join(" · ");
}

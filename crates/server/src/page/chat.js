// The conversation that is open: sends it, shows what comes, and keeps it in the history.

import * as api from "./api.js";
import * as history from "./history.js";
import { AnswerTurn, button, editTurn, questionTurn, resultTurn, resultsForm } from "./turns.js";

// Nearer than this to its end, the log follows what comes.
const FOLLOW_PIXELS = 80;

export class Chat {
  // `on` is told: changed(), running(bool), said(text), locked().
  constructor(log, settings, on) {
    this.log = log;
    this.settings = settings;
    this.on = on;
    this.current = history.fresh();
    this.running = null;
  }

  open(chat) {
    this.stop();
    this.current = chat;
    this.draw();
    this.log.scrollTop = this.log.scrollHeight;
  }

  stop() {
    this.running?.abort();
  }

  get messages() {
    return this.current.messages;
  }

  ask(text) {
    this.messages.push({ role: "user", content: text });
    return this.answer();
  }

  // Answers the last question anew.
  regenerate() {
    while (this.messages.at(-1)?.role === "assistant") this.messages.pop();
    return this.answer();
  }

  draw() {
    const greeting = document.getElementById("greeting").content.cloneNode(true);
    const turns = this.messages.map((message, index) => this.turn(message, index));
    this.log.replaceChildren(...(turns.length ? turns : [greeting]));
  }

  turn(message, index) {
    const last = index === this.messages.length - 1 && !this.running;
    if (message.role === "tool") return resultTurn(message);
    if (message.role === "user") return this.question(message, index);
    const turn = new AnswerTurn(message, this.options());
    turn.show(false);
    this.finish(turn, last);
    return turn.node;
  }

  options() {
    return { openThoughts: this.settings.get("thoughts") === "open" };
  }

  question(message, index) {
    const { node, tools } = questionTurn(message);
    const isLast = !this.messages.slice(index + 1).some(one => one.role === "user");
    if (isLast) this.offerEdit = () => tools.replaceChildren(button("Edit", () => this.edit(index, node)));
    if (isLast && !this.running) this.offerEdit();
    return node;
  }

  edit(index, node) {
    const { node: form, box } = editTurn(this.messages[index].content, text => {
      if (text === null) return this.draw();
      this.messages.splice(index);
      this.ask(text);
    });
    node.replaceWith(form);
    box.focus();
  }

  finish(turn, last) {
    turn.finish(last ? [button(turn.message.error ? "Try again" : "Regenerate", () => this.regenerate())] : []);
    const calls = turn.message.calls ?? [];
    if (last && calls.length) turn.node.append(resultsForm(calls, results => this.give(calls, results)));
  }

  // What called functions gave; the model goes on.
  give(calls, results) {
    calls.forEach((call, at) => this.messages.push({ role: "tool", tool_call_id: call.id, content: results[at] }));
    return this.answer();
  }

  async answer() {
    const chat = this.current;
    const control = new AbortController();
    const body = { ...this.request(), messages: this.sent() };
    const message = { role: "assistant", content: "" };
    chat.messages.push(message);
    this.running = control;
    this.on.running(true);
    history.save(chat);
    this.on.changed();
    this.draw();
    const turn = new AnswerTurn(message, this.options());
    this.log.lastElementChild.replaceWith(turn.node);
    this.log.scrollTop = this.log.scrollHeight;
    await this.stream(body, turn, control.signal);
    // Unless it was deleted meanwhile.
    if (history.load(chat.id)) history.save(chat);
    this.on.changed();
    if (this.running === control) this.rest(chat, turn);
  }

  // Nothing runs any more.
  rest(chat, turn) {
    this.running = null;
    this.on.running(false);
    if (this.current !== chat) return this.draw();
    this.follow(() => this.finish(turn, true));
    this.offerEdit?.();
    this.on.said(turn.message.error ?? turn.body.textContent);
  }

  request() {
    const model = this.settings.get("model");
    const body = { ...this.settings.request(), stream: true, stream_options: { include_usage: true } };
    return model ? { model, ...body } : body;
  }

  // The conversation as the API takes it.
  sent() {
    const system = this.settings.get("system");
    const first = system ? [{ role: "system", content: system }] : [];
    const plain = ({ role, content, thoughts, calls, tool_call_id }) => ({
      role,
      content,
      ...(thoughts ? { reasoning_content: thoughts } : {}),
      ...(calls?.length ? { tool_calls: calls } : {}),
      ...(tool_call_id ? { tool_call_id } : {}),
    });
    return [...first, ...this.messages.map(plain)];
  }

  async stream(body, turn, signal) {
    const { message } = turn;
    const meter = new Meter();
    const drawing = new Drawing(() => this.follow(() => turn.show(true)));
    drawing.now();
    try {
      for await (const chunk of api.chat(body, signal)) {
        meter.add(chunk);
        if (addChunk(message, chunk)) drawing.soon();
      }
    } catch (error) {
      if (error.name === "AbortError") meter.ended = "stopped";
      else message.error = error.message;
      if (error.locked) this.on.locked();
    }
    drawing.end();
    message.figures = meter.figures();
    this.follow(() => turn.show(false));
  }

  // Changes what is shown; who was at the end stays there.
  follow(change) {
    const { scrollHeight, scrollTop, clientHeight } = this.log;
    const atEnd = scrollHeight - scrollTop - clientHeight < FOLLOW_PIXELS;
    change();
    if (atEnd) this.log.scrollTop = this.log.scrollHeight;
  }
}

// Whether the message has changed.
function addChunk(message, chunk) {
  const delta = chunk.choices?.[0]?.delta ?? {};
  if (delta.reasoning_content) message.thoughts = (message.thoughts ?? "") + delta.reasoning_content;
  if (delta.content) message.content += delta.content;
  for (const { id, type, function: called } of delta.tool_calls ?? []) {
    message.calls = [...(message.calls ?? []), { id, type, function: called }];
  }
  return Boolean(delta.reasoning_content || delta.content || delta.tool_calls?.length);
}

// Draws at most once per picture of the screen, however fast chunks come.
class Drawing {
  constructor(draw) {
    this.draw = draw;
    this.asked = 0;
  }

  now() {
    this.asked = 0;
    this.draw();
  }

  soon() {
    this.asked ||= requestAnimationFrame(() => this.now());
  }

  end() {
    cancelAnimationFrame(this.asked);
  }
}

// What an answer takes.
class Meter {
  constructor() {
    this.begun = performance.now();
    this.first = 0;
    this.pieces = 0;
    this.usage = null;
    this.ended = null;
  }

  add(chunk) {
    const choice = chunk.choices?.[0];
    const { content, reasoning_content, tool_calls } = choice?.delta ?? {};
    if (content || reasoning_content || tool_calls?.length) {
      this.first ||= performance.now();
      this.pieces += 1;
    }
    this.usage = chunk.usage ?? this.usage;
    this.ended = choice?.finish_reason ?? this.ended;
  }

  // Of an answer that was stopped the server tells no counts; pieces are about as many.
  figures() {
    const { usage } = this;
    return {
      tokens: usage?.completion_tokens ?? this.pieces,
      promptTokens: usage?.prompt_tokens ?? 0,
      reusedTokens: usage?.prompt_tokens_details?.cached_tokens ?? 0,
      firstMs: this.first ? this.first - this.begun : 0,
      totalMs: performance.now() - this.begun,
      ended: this.ended,
    };
  }
}

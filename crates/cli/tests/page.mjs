// Drives the page at `/` in headless Chromium, against a real server; only where a check needs
// given words from the model are they put in its mouth. Called by page.rs with the module to
// load, the browser, the URLs of an open and of a locked server, and where to put screenshots.
import { readsMarkdown } from "./page_markdown.mjs";

const [module, browserPath, url, lockedUrl, shots] = process.argv.slice(2);
const { chromium } = await import(module);
const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
const WIDE = { width: 1360, height: 840 };
const PHONE = { width: 360, height: 740 };

function check(holds, what) {
  if (!holds) throw new Error(what);
}

// A page in a browser of its own, closed after `steps`; nothing may go wrong in it but `expected`.
async function visit(steps, { expected = /$^/, at = url, ...options } = {}) {
  const context = await browser.newContext({ viewport: WIDE, ...options });
  const page = await context.newPage();
  const errors = [], foreign = [], dialogs = [];
  page.on("pageerror", error => errors.push(String(error.stack)));
  page.on("console", message => message.type() === "error" && !expected.test(message.text()) && errors.push(message.text()));
  page.on("request", request => !/^blob:/.test(request.url()) && new URL(request.url()).origin !== at && foreign.push(request.url()));
  page.on("dialog", dialog => { dialogs.push(dialog.message()); dialog.accept(); });
  await page.goto(at);
  await steps(page, dialogs);
  check(!errors.length, "in the console:\n" + errors.join("\n"));
  check(!foreign.length, "asked elsewhere: " + foreign);
  await context.close();
}

const shot = (page, name) => page.screenshot({ path: `${shots}/page-${name}.png`, caret: "initial" });
const finished = page => page.waitForFunction(() => document.getElementById("send").textContent === "Send", null, { timeout: 90000 });

async function send(page, text) {
  await page.fill("#text", text);
  await page.press("#text", "Enter");
}

// Settings by their names.
async function set(page, values) {
  await page.click("#gear");
  for (const [name, value] of Object.entries(values)) {
    const field = page.locator(`#settings [name="${name}"]`);
    if (await field.evaluate(node => node.tagName === "SELECT")) await field.selectOption(value);
    else await field.fill(value);
  }
  await page.click("#settings .foot .primary");
  await page.waitForFunction(() => !document.getElementById("settings").open);
}

// The model says these deltas to every question; the bodies it was asked with are returned.
async function says(page, deltas, usage = { prompt_tokens: 7, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 3 } }) {
  const asked = [];
  const chunks = [...deltas.map(delta => ({ choices: [{ index: 0, delta, finish_reason: null }] })), { choices: [], usage }];
  const body = chunks.map(chunk => `data: ${JSON.stringify(chunk)}\n\n`).join("") + "data: [DONE]\n\n";
  await page.unroute("**/v1/chat/completions");
  await page.route("**/v1/chat/completions", route => {
    asked.push(route.request().postDataJSON());
    return route.fulfill({ status: 200, contentType: "text/event-stream", body });
  });
  return asked;
}

async function fits(page, what) {
  const [needed, there] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  const log = await page.evaluate(() => document.getElementById("log").scrollWidth - document.getElementById("log").clientWidth);
  check(needed <= there && log <= 0, `${what} is too wide: ${needed} of ${there}, log by ${log}`);
}

// A question is answered, and the map shows by whom and where they are.
async function chats(page, name) {
  await page.waitForFunction(() => document.getElementById("shape").textContent.includes("×"));
  const heat = () => page.evaluate(() => document.getElementById("heat").toDataURL());
  const before = await heat();
  await set(page, { max_tokens: "120" });
  await send(page, "What does a lighthouse keeper do every evening?");
  await page.waitForFunction(() => (document.querySelector(".assistant .markdown")?.textContent.length ?? 0) > 70, null, { timeout: 60000 });
  await page.waitForTimeout(1500);
  check(before !== (await heat()), "the heat map did not change");
  await finished(page);
  const figures = await page.textContent(".figures");
  check(/^\d+ tokens · [\d.]+ tokens\/s · first after [\d.]+ s · prompt \d+/.test(figures), "figures: " + figures);
  await mapAgrees(page);
  await fits(page, name);
  await shot(page, name);
}

// Some experts are in memory and some on disk; a full square and a dot differ at their corner.
async function mapAgrees(page) {
  await page.waitForTimeout(1800);
  const seen = await page.evaluate(() => {
    const canvas = document.getElementById("heat"), paint = canvas.getContext("2d");
    const [layers, experts] = document.getElementById("shape").textContent.match(/\d+/g).map(Number);
    const cell = canvas.width / experts;
    const painted = (x, y) => paint.getImageData(x * cell, y * cell, 1, 1).data[3] > 0;
    let squares = 0;
    for (let y = 0; y < layers; y += 1) for (let x = 0; x < experts; x += 1) squares += painted(x, y);
    const count = kind => Number(document.querySelector(`#legend [data-kind="${kind}"] b`)?.textContent);
    return { squares, all: layers * experts, memory: count("memory"), disk: count("disk") };
  });
  const agrees = seen.memory + seen.disk === seen.all && seen.memory === seen.squares && seen.memory > 0 && seen.disk > 0;
  check(agrees, "the map and its legend disagree: " + JSON.stringify(seen));
}

async function keepsHistory(page, dialogs) {
  await says(page, [{ content: "One." }]);
  await send(page, "The first question");
  await finished(page);
  await page.click("#new");
  check((await page.locator(".turn").count()) === 0, "a new chat is not empty");
  await send(page, "The second question");
  await finished(page);
  await page.reload();
  const titles = () => page.locator("#chats .open").allTextContents();
  check((await titles()).join() === "The second question,The first question", "after a reload: " + (await titles()));
  check((await page.textContent(".bubble")) === "The second question", "the open chat is not shown again");
  await page.click("#chats li:nth-child(2) .open");
  check((await page.textContent(".bubble")) === "The first question", "a chat of the list does not open");
  await page.hover("#chats li:nth-child(2)");
  await page.click("#chats li:nth-child(2) [aria-label^=Rename]");
  await page.fill("#chats input", "Renamed");
  await page.press("#chats input", "Enter");
  check((await titles()).includes("Renamed"), "not renamed");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#export")]);
  check(download.suggestedFilename() === "motley-chats.json", "no export");
  await page.hover("#chats li:nth-child(1)");
  await page.click("#chats li:nth-child(1) [aria-label^=Delete]");
  check((await titles()).join() === "Renamed", "not deleted");
  await page.click("#clear");
  check(dialogs.length === 1 && (await titles()).length === 0, "not all deleted");
  await page.reload();
  check((await titles()).length === 0, "deleted chats come back");
  const left = await page.evaluate(() => Object.keys(localStorage).filter(name => name.startsWith("motley.chat.")));
  check(left.length === 0, "left in the browser: " + left);
}

// History has a bound: when the browser's storage is full, the oldest go.
async function boundsHistory(page) {
  const kept = await page.evaluate(async () => {
    const history = await import("/motley/page/history.js");
    for (let at = 0; at < 12; at += 1) {
      history.save({ ...history.fresh(), messages: [{ role: "user", content: at + " " + "x".repeat(900000) }] });
    }
    return history.list().map(one => [one.title.slice(0, 2), history.load(one.id) !== null]);
  });
  check(kept.length >= 2 && kept.length < 12 && kept[0][0] === "11" && kept.every(one => one[1]), JSON.stringify(kept));
}

async function sendsSettings(page) {
  const asked = await says(page, [{ content: "Yes." }]);
  await page.waitForFunction(() => document.getElementById("model").value);
  await send(page, "Defaults?");
  await finished(page);
  const defaults = await page.evaluate(async () => (await fetch("/motley/settings")).json());
  check(asked[0].temperature === defaults.temperature && asked[0].top_k === defaults.top_k, "not the server's defaults: " + JSON.stringify(asked[0]));
  check(asked[0].model === (await page.inputValue("#model")) && !("max_tokens" in asked[0]), JSON.stringify(asked[0]));
  await set(page, { system: "Be brief.", temperature: "0.25", top_p: "0.5", max_tokens: "9", thinking: "off" });
  await page.reload();
  await send(page, "Mine?");
  await finished(page);
  const { temperature, top_p, max_tokens, chat_template_kwargs, messages } = asked[1];
  check(temperature === 0.25 && top_p === 0.5 && max_tokens === 9 && chat_template_kwargs.enable_thinking === false, JSON.stringify(asked[1]));
  check(messages[0].content === "Be brief." && messages.at(-1).content === "Mine?", JSON.stringify(messages));
  // The real server takes them as they are.
  await page.unroute("**/v1/chat/completions");
  await send(page, "And now the model");
  await finished(page);
  check(/^\d tokens? .*cut at the limit/.test(await page.locator(".figures").last().textContent()), "the limit of tokens is not kept");
}

async function editsAndStops(page) {
  const asked = await says(page, [{ content: "Once." }]);
  await page.fill("#text", "line one");
  await page.press("#text", "Shift+Enter");
  check((await page.inputValue("#text")) === "line one\n", "Shift+Enter is no new line");
  await page.fill("#text", "");
  await send(page, "Before");
  await finished(page);
  await page.getByRole("button", { name: "Regenerate" }).click();
  await finished(page);
  check(asked.length === 2 && asked[1].messages.length === 1, "regenerated: " + JSON.stringify(asked.at(-1)));
  await page.getByRole("button", { name: "Edit" }).click();
  await page.fill(".edit textarea", "After");
  await page.press(".edit textarea", "Enter");
  await finished(page);
  check(asked[2].messages.length === 1 && asked[2].messages[0].content === "After", "edited: " + JSON.stringify(asked.at(-1)));
  await page.unroute("**/v1/chat/completions");
  await send(page, "Tell a very long story");
  await page.waitForFunction(() => document.querySelectorAll(".assistant .markdown")[1]?.textContent.length > 20, null, { timeout: 60000 });
  check((await page.textContent("#send")) === "Stop", "no way to stop");
  await page.keyboard.press("Escape");
  await finished(page);
  check((await page.locator(".figures").last().textContent()).endsWith("stopped"), "not stopped");
}

async function foldsThoughts(page) {
  const call = { index: 0, id: "c1", type: "function", function: { name: "weather", arguments: '{"town":"Oslo"}' } };
  await says(page, [{ reasoning_content: "Hm, " }, { reasoning_content: "well." }, { content: "Done." }]);
  await send(page, "Think");
  await finished(page);
  const thoughts = page.locator(".thoughts");
  check((await thoughts.getAttribute("open")) === null, "thoughts are not folded");
  check((await thoughts.locator("div").textContent()) === "Hm, well.", "thoughts are lost");
  check((await page.textContent(".assistant .markdown")) === "Done." && (await page.textContent("#said")) === "Done.", "not said");
  check((await page.textContent(".figures")).includes("prompt 7, 3 reused"), "reuse is not shown");
  await set(page, { thoughts: "open", tools: '[{"name": "weather", "parameters": {"type": "object"}}]' });
  check((await thoughts.getAttribute("open")) !== null, "thoughts are not shown");
  let asked = await says(page, [{ tool_calls: [call] }]);
  await send(page, "Call");
  await finished(page);
  check(asked[0].tools[0].function.name === "weather", "tools are not sent");
  check((await page.textContent(".call")).includes('"town": "Oslo"'), "the call is not shown");
  asked = await says(page, [{ content: "Rain." }]);
  await page.fill(".results textarea", "12 degrees");
  await page.click(".results button");
  await finished(page);
  const [called, given] = asked[0].messages.slice(-2);
  check(called.tool_calls[0].id === "c1" && given.role === "tool" && given.tool_call_id === "c1" && given.content === "12 degrees", JSON.stringify(asked[0].messages));
}

const HOSTILE = [
  "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'><svg onload=alert(1)>",
  "[a](javascript:window.hacked=1) [b](data:text/html,<script>alert(1)</script>) [c](JaVaScRiPt:alert(1)) [d](vbscript:x) [e](//evil.example/x)",
  "![p](https://evil.example/p.png) ![q](javascript:alert(1)) <a href=\"javascript:alert(1)\">x</a> <https://ok.example/\"onmouseover=alert(1)>",
  "[f](https://ok.example/\"onclick=\"alert(1)) `<img src=x onerror=alert(1)>` **<iframe src=https://evil.example>**",
  "# <style>*{display:none}</style>",
  "| <b onclick=alert(1)> | [x](javascript:alert(1)) |\n|---|---|\n| <script>alert(1)</script> | ![](https://evil.example/z.png) |",
  "x".repeat(5000),
  "- ".repeat(300) + "deep\n" + ">".repeat(300) + "deep",
  "``` <script>alert(1)</script>\n" + "y".repeat(3000) + "\n</code></pre><script>window.hacked = 1</script>",
].join("\n\n");

async function isNotHacked(page) {
  await says(page, [...HOSTILE.match(/[^]{1,7}/g)].map(content => ({ content })));
  await send(page, "<img src=x onerror='window.hacked = 1'>");
  await finished(page);
  const found = await page.evaluate(() => {
    const all = [...document.querySelectorAll("#log *")];
    const events = all.flatMap(node => node.getAttributeNames().filter(name => name.startsWith("on") || name === "style"));
    const names = new Set(all.map(node => node.localName));
    const links = all.filter(node => node.localName === "a").map(node => [node.protocol, node.rel]);
    return { hacked: window.hacked, events, bad: ["script", "img", "svg", "iframe", "style", "object"].filter(name => names.has(name)), links };
  });
  check(found.hacked === undefined && !found.events.length && !found.bad.length, "hostile text got through: " + JSON.stringify(found));
  check(found.links.length > 1 && found.links.every(([protocol, rel]) => /^https?:$/.test(protocol) && rel.includes("noopener")), "links: " + JSON.stringify(found.links));
  check((await page.textContent(".assistant .markdown")).includes("<script>window.hacked"), "hostile text is not shown as text");
  await fits(page, "hostile text");
}

async function tellsErrors(page) {
  await send(page, "word ".repeat(9000));
  await finished(page);
  const error = await page.textContent(".error");
  check(error.includes("too long"), "not the server's words: " + error);
  check(await page.getByRole("button", { name: "Try again" }).isVisible(), "no way to try again");
  await page.route("**/v1/chat/completions", route => route.abort());
  await send(page, "Still there?");
  await finished(page);
  check((await page.locator(".error").last().textContent()).includes("does not answer"), "a lost server is not told");
}

async function isPhone(page) {
  await says(page, [{ content: "| a | b | c | d |\n|---|---|---|---|\n| " + "wide ".repeat(30) + "| 2 | 3 | 4 |\n\n```\n" + "code ".repeat(60) + "\n```\n" }]);
  await send(page, "long".repeat(200));
  await finished(page);
  await fits(page, "a phone");
  let asked = 0;
  page.on("request", request => { asked += request.url().includes("/motley/dashboard"); });
  await page.waitForTimeout(1500);
  const expanded = () => page.getAttribute("#toggle-dashboard", "aria-expanded");
  check(asked === 0 && (await expanded()) === "false", "a dashboard that is closed asks");
  await page.click("#toggle-sidebar");
  await page.waitForTimeout(300);
  check(await page.locator("#new").isVisible(), "no drawer");
  await fits(page, "a phone with its drawer");
  await page.keyboard.press("Escape");
  await page.click("#toggle-dashboard");
  await page.waitForTimeout(1200);
  await fits(page, "a phone with its dashboard");
  check(asked > 0 && (await expanded()) === "true", "a dashboard that is open does not ask");
  await shot(page, "phone-dashboard");
  await page.click("#close-dashboard");
  await page.click("#gear");
  await fits(page, "a phone with its settings");
  await page.keyboard.press("Escape");
}

// WCAG 2.2, 1.4.3: 4.5 to 1 for text.
async function contrasts(page) {
  const low = await page.evaluate(() => {
    const style = getComputedStyle(document.documentElement);
    const light = name => {
      const hex = style.getPropertyValue(name).trim().slice(1);
      const parts = (hex.length === 3 ? [...hex].map(one => one + one) : hex.match(/../g)).map(part => parseInt(part, 16) / 255);
      const [r, g, b] = parts.map(part => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ratio = (one, other) => {
      const [high, low] = [light(one), light(other)].sort((a, b) => b - a);
      return (high + 0.05) / (low + 0.05);
    };
    const grounds = ["--bg", "--card", "--mine", "--code", "--hover"];
    const pairs = [["--on-accent", "--accent"], ["--bg", "--ink"]];
    for (const ground of grounds) for (const text of ["--ink", "--soft", "--accent", "--focus", "--wrong"]) pairs.push([text, ground]);
    return pairs.map(pair => [...pair, ratio(...pair)]).filter(pair => pair[2] < 4.5);
  });
  check(!low.length, "too little contrast: " + JSON.stringify(low));
}

async function switchesColours(page) {
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await contrasts(page);
  await page.click("#theme");
  const dark = await ground();
  await contrasts(page);
  await page.reload();
  check(light !== dark && (await ground()) === dark, "dark does not last");
}

// Nobody looks, nobody asks.
async function rests(page) {
  let asked = 0;
  page.on("request", request => { asked += request.url().includes("/motley/dashboard"); });
  await page.waitForTimeout(2000);
  check(asked > 0, "the dashboard is not read");
  const hide = hidden => page.evaluate(hidden => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
  await hide(true);
  await page.waitForTimeout(300);
  asked = 0;
  await page.waitForTimeout(2000);
  check(asked === 0, "a hidden page asks");
  await hide(false);
  await page.waitForTimeout(500);
  check(asked > 0, "a page that is seen again does not ask");
}

async function unlocks(page) {
  await page.waitForSelector("#lock:not([hidden])");
  await page.fill("#key", "wrong");
  await page.press("#key", "Enter");
  await page.waitForSelector("#wrongkey:not([hidden])");
  await page.fill("#key", "sesame");
  await page.press("#key", "Enter");
  await page.waitForSelector("#lock", { state: "hidden" });
  await page.waitForFunction(() => document.getElementById("shape").textContent.includes("×"));
}

const unlocked = /status of 401/;
const refused = /status of 400|net::ERR_FAILED/;
await visit(page => chats(page, "light"), { colorScheme: "light" });
await visit(page => chats(page, "dark"), { colorScheme: "dark" });
await visit(keepsHistory);
await visit(boundsHistory);
await visit(sendsSettings);
await visit(editsAndStops);
await visit(foldsThoughts);
await visit(isNotHacked);
await visit(isNotHacked, { viewport: PHONE });
await visit(tellsErrors, { expected: refused });
await visit(isPhone, { viewport: PHONE, hasTouch: true, isMobile: true, reducedMotion: "reduce" });
await visit(switchesColours, { colorScheme: "light" });
await visit(rests);
await visit(page => readsMarkdown(page, check));
await visit(unlocks, { at: lockedUrl, expected: unlocked });
await browser.close();
console.log("page ok");

// Elements: made with their text as text, never as markup. Draws trees of `blocks.js`, and
// draws them again while a stream grows, touching only what has changed.

import { parse } from "./blocks.js";

// An element with attributes and children; texts become text nodes.
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

// Copies text, also where the browser offers no clipboard: on plain HTTP from another machine.
export async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const box = element("textarea", { class: "offscreen", readonly: true });
  box.value = text;
  document.body.append(box);
  box.select();
  document.execCommand("copy");
  box.remove();
}

// A button that copies what `text` gives, and says so for a moment.
export function copyButton(text, label = "Copy") {
  const button = element("button", { type: "button", class: "quiet" }, label);
  button.addEventListener("click", async () => {
    await copyText(text());
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1500);
  });
  return button;
}

// Shows markdown in `parent`, where an earlier state of the same text may be shown already.
export function showMarkdown(parent, text) {
  const tree = parse(text);
  const shown = parent.blocks ?? [];
  tree.forEach((block, index) => {
    const key = JSON.stringify(block);
    const old = shown[index];
    if (old?.key === key) return;
    if (old && extendCode(old, block)) old.key = key;
    else shown[index] = placed(parent, old, { key, block, node: draw(block) });
  });
  shown.splice(tree.length).forEach(old => old.node.remove());
  parent.blocks = shown;
}

function placed(parent, old, made) {
  if (old) old.node.replaceWith(made.node);
  else parent.append(made.node);
  return made;
}

// Code that grows keeps its element, and with it what is selected in it.
function extendCode(old, block) {
  const same = old.block.type === "code" && block.type === "code" && old.block.language === block.language;
  if (!same || !block.text.startsWith(old.block.text)) return false;
  old.node.querySelector("code").append(block.text.slice(old.block.text.length));
  old.block = block;
  return true;
}

const DRAW = {
  paragraph: block => element("p", {}, ...spans(block.children)),
  heading: block => element("h" + Math.min(6, block.level + 2), { class: "level" + block.level }, ...spans(block.children)),
  rule: () => element("hr"),
  quote: block => element("blockquote", {}, ...block.children.map(draw)),
  list: drawList,
  code: drawCode,
  table: drawTable,
};

function draw(block) {
  return DRAW[block.type](block);
}

function drawList(block) {
  const start = block.ordered && block.start !== 1 ? block.start : undefined;
  const items = block.items.map(children => element("li", {}, ...children.flatMap(child => drawInItem(child, block.loose))));
  return element(block.ordered ? "ol" : "ul", { start }, ...items);
}

function drawInItem(child, loose) {
  return child.type === "paragraph" && !loose ? spans(child.children) : [draw(child)];
}

function drawCode(block) {
  const code = element("code", {}, block.text);
  const label = element("span", {}, block.language || "text");
  const bar = element("div", { class: "codebar" }, label, copyButton(() => code.textContent));
  return element("div", { class: "code" }, bar, element("pre", { tabindex: "0" }, code));
}

function drawTable(block) {
  const cell = name => (children, column) => element(name, { class: block.aligns[column] }, ...spans(children));
  const head = element("thead", {}, element("tr", {}, ...block.head.map(cell("th"))));
  const rows = block.rows.map(row => element("tr", {}, ...row.map(cell("td"))));
  const table = element("table", {}, head, element("tbody", {}, ...rows));
  return element("div", { class: "table", tabindex: "0" }, table);
}

function spans(nodes) {
  return nodes.map(node => (typeof node === "string" ? node : span(node)));
}

function span(node) {
  if (node.type === "br") return element("br");
  if (node.type === "code") return element("code", {}, node.text);
  if (node.type !== "link") return element(node.type, {}, ...spans(node.children));
  const rel = "noopener noreferrer nofollow";
  return element("a", { href: node.href, title: node.href, rel, target: "_blank" }, ...spans(node.children));
}

// Markdown within a line of text, as a tree: strings, and nodes {type, children} of types
// strong, em, del, code, link and br. Makes no elements. Time grows with the text's length,
// whatever is in it: every search that fails is remembered or bounded.

// Openers that are looked back at; also the depth of what is nested.
const OPENERS_MAX = 32;
const PUNCTUATION = /[!-/:-@[-`{-~]/;
const SPACE = /\s/;
const TARGET = /\(\s{0,8}<?([^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*)>?(?:\s{1,8}"[^"\n]*")?\s{0,8}\)/y;
const ANGLED = /<(https?:\/\/[^\s<>]+)>/iy;
const BARE = /https?:\/\/[^\s<>"`]+/iy;
const PLAIN = /[^\\`*_~[\]!<h\n]+/y;

// The address if it leads to a web page, else null: no scripts, no files, no data.
export function webAddress(text) {
  if (!/^https?:\/\//i.test(text)) return null;
  try {
    return new URL(text).href;
  } catch {
    return null;
  }
}

// The nodes of `text`.
export function inline(text) {
  return new Inline(text).parse();
}

class Inline {
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.nodes = [];
    // Places in `nodes` of marks that may begin something: {at, mark, length}.
    this.openers = [];
    this.missing = new Set();
  }

  parse() {
    while (this.at < this.text.length) this.step();
    return joined(this.nodes);
  }

  step() {
    const plain = this.match(PLAIN);
    if (plain) return this.push(plain[0]);
    const mark = this.text[this.at];
    if (mark === "\\") return this.escape();
    if (mark === "`") return this.code();
    if (mark === "*" || mark === "_" || mark === "~") return this.emphasis(mark);
    if (mark === "\n") return this.newline();
    if (mark === "<") return this.angled();
    if (mark === "h") return this.bare();
    if (mark === "]") return this.closeLink();
    if (mark === "[" || this.text.startsWith("![", this.at)) return this.openLink(mark === "!");
    this.take(1);
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found) this.at += found[0].length;
    return found;
  }

  push(node) {
    this.nodes.push(node);
  }

  // The next characters as they are.
  take(count) {
    this.push(this.text.slice(this.at, this.at + count));
    this.at += count;
  }

  escape() {
    const next = this.text[this.at + 1] ?? "";
    if (next === "\n") {
      this.at += 2;
      return this.push({ type: "br" });
    }
    if (!PUNCTUATION.test(next)) return this.take(1);
    this.at += 1;
    this.take(1);
  }

  newline() {
    const before = this.nodes.at(-1);
    const hard = typeof before === "string" && before.endsWith("  ");
    if (typeof before === "string") this.nodes[this.nodes.length - 1] = before.trimEnd();
    this.at += 1;
    this.push(hard ? { type: "br" } : "\n");
  }

  code() {
    const length = this.run("`");
    const end = this.missing.has(length) ? -1 : this.closing(this.at + length, length);
    if (end < 0) {
      this.missing.add(length);
      return this.take(length);
    }
    const inside = this.text.slice(this.at + length, end).replaceAll("\n", " ");
    const padded = inside.startsWith(" ") && inside.endsWith(" ") && inside.trim() !== "";
    this.push({ type: "code", text: padded ? inside.slice(1, -1) : inside });
    this.at = end + length;
  }

  // How often `mark` stands here.
  run(mark) {
    let end = this.at;
    while (this.text[end] === mark) end += 1;
    return end - this.at;
  }

  // Where exactly `length` backticks begin.
  closing(from, length) {
    const runs = /`+/g;
    runs.lastIndex = from;
    for (let found = runs.exec(this.text); found; found = runs.exec(this.text)) {
      if (found[0].length === length) return found.index;
    }
    return -1;
  }

  emphasis(mark) {
    const run = this.run(mark);
    const usable = mark === "~" ? run === 2 : run <= 3;
    if (!usable) return this.take(run);
    const { opens, closes } = this.flanks(mark, run);
    let left = run;
    if (closes) left = this.close(mark, left);
    this.at += run - left;
    if (!left) return;
    if (opens) this.open(mark, left);
    this.take(left);
  }

  // Whether marks stand before a word, and after one.
  flanks(mark, run) {
    const before = this.text[this.at - 1] ?? " ", after = this.text[this.at + run] ?? " ";
    const opens = !SPACE.test(after) && (!PUNCTUATION.test(after) || SPACE.test(before) || PUNCTUATION.test(before));
    const closes = !SPACE.test(before) && (!PUNCTUATION.test(before) || SPACE.test(after) || PUNCTUATION.test(after));
    if (mark !== "_") return { opens, closes };
    const word = /[\p{L}\p{N}]/u;
    return { opens: opens && !word.test(before), closes: closes && !word.test(after) };
  }

  open(mark, length) {
    this.openers.push({ at: this.nodes.length, mark, length });
    if (this.openers.length > OPENERS_MAX) this.openers.shift();
  }

  // Closes what `left` marks close, and says how many are left.
  close(mark, left) {
    while (left > 0) {
      const index = this.openers.findLastIndex(one => one.mark === mark);
      if (index < 0) return left;
      const opener = this.openers[index];
      const size = Math.min(left, opener.length, 2);
      if (mark === "~" && size < 2) return left;
      const type = mark === "~" ? "del" : size === 2 ? "strong" : "em";
      this.openers.length = opener.length > size ? index + 1 : index;
      const rest = opener.length - size;
      const children = joined(this.nodes.splice(opener.at).slice(1));
      if (rest) {
        this.nodes.push(mark.repeat(rest));
        opener.length = rest;
      }
      this.push({ type, children });
      left -= size;
    }
    return left;
  }

  openLink(picture) {
    this.open("[", 1);
    this.take(picture ? 2 : 1);
  }

  // A link, or a picture, which is shown as a link: nothing is loaded.
  closeLink() {
    const index = this.openers.findLastIndex(one => one.mark === "[");
    if (index < 0) return this.take(1);
    const opener = this.openers[index];
    this.openers.length = index;
    const from = this.at;
    this.at += 1;
    const target = this.match(TARGET);
    const href = target && webAddress(target[1]);
    if (!href) {
      this.at = from;
      return this.take(1);
    }
    this.openers = this.openers.filter(one => one.mark !== "[");
    const inside = joined(this.nodes.splice(opener.at).slice(1));
    this.push({ type: "link", href, children: inside.length ? withoutLinks(inside) : [href] });
  }

  angled() {
    const found = this.match(ANGLED);
    const href = found && webAddress(found[1]);
    if (!href) {
      if (found) this.at -= found[0].length;
      return this.take(1);
    }
    this.push({ type: "link", href, children: [found[1]] });
  }

  bare() {
    const before = this.text[this.at - 1] ?? " ";
    const found = /[\p{L}\p{N}]/u.test(before) ? null : this.match(BARE);
    if (!found) return this.take(1);
    const shown = bareEnd(found[0]);
    this.at -= found[0].length - shown.length;
    const href = webAddress(shown);
    this.push(href ? { type: "link", href, children: [shown] } : shown);
  }
}

// Without punctuation that belongs to the sentence, and a bracket that was opened before.
function bareEnd(address) {
  const mark = address.search(/[*\]]|__|~~/);
  const marks = address.includes("(") ? ".,;:!?'" : ".,;:!?')";
  let end = mark < 0 ? address.length : mark;
  while (end > 0 && marks.includes(address[end - 1])) end -= 1;
  return address.slice(0, end);
}

// A link within a link is its text.
function withoutLinks(nodes) {
  const plain = node => {
    if (typeof node === "string" || !node.children) return [node];
    const children = withoutLinks(node.children);
    return node.type === "link" ? children : [{ ...node, children }];
  };
  return joined(nodes.flatMap(plain));
}

// Strings side by side are one.
function joined(nodes) {
  const all = [];
  for (const node of nodes) {
    if (typeof node === "string" && typeof all.at(-1) === "string") all[all.length - 1] += node;
    else if (node !== "") all.push(node);
  }
  return all;
}

// Markdown as a tree of blocks: heading, paragraph, list, quote, code, table, rule. A small part
// of CommonMark with tables; anything else, HTML above all, stays text. Makes no elements. What
// is not finished, as a fence at the end of a stream, is read as if it ended there.

import { inline } from "./inline.js";

// Quotes and lists within each other; deeper ones are text.
const DEPTH_MAX = 12;
const FENCE = /^( {0,3})(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})([ \t].*)?$/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?:( {1,4})(?! )|( )(?= )|$)/;
const DELIMITER = /^:?-+:?$/;

// The blocks of `text`.
export function parse(text) {
  return blocks(withoutTabs(text.replace(/\r\n?/g, "\n").split("\n")), 0);
}

// Tabs that indent become spaces, but not in code.
function withoutTabs(lines) {
  let fence = null;
  return lines.map(line => {
    const marks = FENCE.exec(line.trimStart())?.[2];
    if (fence ? closes(line.trimStart(), fence) : marks) fence = fence ? null : marks;
    else if (fence) return line;
    return line.replace(/^[ \t]+/, space => space.replaceAll("\t", "    "));
  });
}

function blocks(lines, depth) {
  const reader = { lines, at: 0, depth };
  const found = [];
  while (reader.at < lines.length) {
    if (isBlank(lines[reader.at])) {
      reader.at += 1;
      continue;
    }
    const read = KINDS.find(kind => kind.begins(reader)).read;
    found.push(read(reader));
  }
  return found;
}

const nests = reader => reader.depth < DEPTH_MAX;
const here = reader => reader.lines[reader.at];

// In the order in which they are tried; the last takes everything.
const KINDS = [
  { begins: reader => FENCE.test(here(reader)), read: code },
  { begins: reader => HEADING.test(here(reader)), read: heading },
  { begins: reader => RULE.test(here(reader)), read: rule },
  { begins: reader => nests(reader) && QUOTE.test(here(reader)), read: quote },
  { begins: reader => nests(reader) && ITEM.test(here(reader)), read: list },
  { begins: beginsTable, read: table },
  { begins: () => true, read: paragraph },
];

function isBlank(line) {
  return line.trim() === "";
}

function indent(line) {
  return line.length - line.trimStart().length;
}

function code(reader) {
  const [, before, fence, info] = FENCE.exec(here(reader));
  const lines = [];
  for (reader.at += 1; reader.at < reader.lines.length; reader.at += 1) {
    const line = here(reader);
    if (closes(line, fence)) {
      reader.at += 1;
      break;
    }
    lines.push(line.slice(Math.min(indent(line), before.length)));
  }
  // The beginning of a line that has not come yet.
  if (reader.at === reader.lines.length && lines.at(-1) === "") lines.pop();
  return { type: "code", language: info.trim().split(/\s/)[0], text: lines.join("\n") };
}

function closes(line, fence) {
  const found = line.trim();
  return indent(line) < 4 && found.length >= fence.length && found === fence[0].repeat(found.length);
}

function heading(reader) {
  const [, marks, text] = HEADING.exec(here(reader));
  reader.at += 1;
  const title = (text ?? "").trim().replace(/(^| )#+$/, "");
  return { type: "heading", level: marks.length, children: inline(title.trim()) };
}

function rule(reader) {
  reader.at += 1;
  return { type: "rule" };
}

function quote(reader) {
  const lines = [];
  for (; reader.at < reader.lines.length && QUOTE.test(here(reader)); reader.at += 1) {
    lines.push(here(reader).replace(QUOTE, ""));
  }
  return { type: "quote", children: blocks(lines, reader.depth + 1) };
}

function list(reader) {
  const first = ITEM.exec(here(reader));
  const ordered = first[2].length > 1;
  const found = { type: "list", ordered, start: ordered ? parseInt(first[2], 10) : 1, loose: false, items: [] };
  while (reader.at < reader.lines.length && belongs(here(reader), first)) {
    const item = itemLines(reader);
    // An item is loose when what it says is in parts.
    const children = blocks(item.lines, reader.depth + 1);
    found.loose ||= children.filter(child => child.type === "paragraph").length > 1;
    found.items.push(children);
    if (item.gap && reader.at < reader.lines.length && belongs(here(reader), first)) found.loose = true;
  }
  return found;
}

// Whether the line is a further item of the list that began with `first`.
function belongs(line, first) {
  const next = ITEM.exec(line);
  return next !== null && !RULE.test(line) && next[2].at(-1) === first[2].at(-1) && next[1].length < first[1].length + 2;
}

// The lines of an item without its mark and indent, and whether an empty line follows it.
function itemLines(reader) {
  const first = here(reader), mark = ITEM.exec(first);
  const width = mark[0].length, least = mark[1].length + 2;
  const lines = [first.slice(width)];
  let gap = false, fence = null;
  for (reader.at += 1; reader.at < reader.lines.length; reader.at += 1) {
    const line = here(reader), blank = isBlank(line);
    const inside = blank || indent(line) >= Math.min(least, width);
    if (!inside && (gap || fence || begins(line))) break;
    const own = blank ? "" : line.slice(Math.min(indent(line), width));
    const marks = FENCE.exec(own)?.[2];
    if (fence ? closes(own, fence) : marks) fence = fence ? null : marks;
    gap = blank && !fence;
    lines.push(own);
  }
  while (lines.length > 1 && lines.at(-1) === "") lines.pop();
  return { lines, gap };
}

// Whether a line ends a paragraph by beginning something else.
function begins(line) {
  const item = ITEM.exec(line);
  const startsList = item !== null && item[0].length < line.length && (item[2].length === 1 || /^1[.)]$/.test(item[2]) || item[1].length > 0);
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || startsList || isMark(line);
}

// An item of a list that goes on: `2.` directly under the text of `1.`
function isMark(line) {
  return /^ {0,3}\d{1,9}[.)] +\S/.test(line);
}

function beginsTable(reader) {
  const next = reader.lines[reader.at + 1] ?? "";
  if (!next.includes("-") || !next.includes("|") || !here(reader).includes("|")) return false;
  const marks = cells(next);
  return marks.every(mark => DELIMITER.test(mark)) && cells(here(reader)).length === marks.length;
}

function table(reader) {
  const head = cells(here(reader));
  reader.at += 1;
  const aligns = cells(here(reader)).map(alignment);
  const rows = [];
  for (reader.at += 1; reader.at < reader.lines.length; reader.at += 1) {
    const line = here(reader);
    if (isBlank(line) || !line.includes("|")) break;
    const found = cells(line);
    rows.push(head.map((_, column) => inline(found[column] ?? "")));
  }
  return { type: "table", aligns, head: head.map(inline), rows };
}

function alignment(mark) {
  if (mark.endsWith(":")) return mark.startsWith(":") ? "center" : "right";
  return "left";
}

// Texts between bars; `\|` and bars in code are no borders.
function cells(line) {
  const found = [];
  let cell = "", code = false;
  const text = line.trim().replace(/^\|/, ""), lastMark = text.lastIndexOf("`");
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "\\" && text[at + 1] === "|") {
      cell += "|";
      at += 1;
    } else if (text[at] === "|" && !(code && at < lastMark)) {
      found.push(cell.trim());
      cell = "";
    } else {
      if (text[at] === "`") code = !code;
      cell += text[at];
    }
  }
  if (cell.trim()) found.push(cell.trim());
  return found;
}

function paragraph(reader) {
  const lines = [here(reader).trimStart()];
  for (reader.at += 1; reader.at < reader.lines.length; reader.at += 1) {
    const line = here(reader);
    if (isBlank(line) || (nests(reader) && begins(line)) || beginsTable(reader)) break;
    lines.push(line.trimStart());
  }
  return { type: "paragraph", children: inline(lines.join("\n").trimEnd()) };
}

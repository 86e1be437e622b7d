// Markdown as the page reads it: trees of given texts, and streams cut at every place.

const paragraph = (...children) => ({ type: "paragraph", children });
const list = (items, more = {}) => ({ type: "list", ordered: false, start: 1, loose: false, items, ...more });

// Texts and the trees they become.
const CASES = [
  ["a **b *c* d** `e *f*`", [paragraph("a ", { type: "strong", children: ["b ", { type: "em", children: ["c"] }, " d"] }, " ", { type: "code", text: "e *f*" })]],
  ["snake_case_name 2*3*4 a * b *", [paragraph("snake_case_name 2", { type: "em", children: ["3"] }, "4 a * b *")]],
  ["***both*** ~~gone~~ \\*not\\*", [paragraph({ type: "em", children: [{ type: "strong", children: ["both"] }] }, " ", { type: "del", children: ["gone"] }, " *not*")]],
  ["**open and `open", [paragraph("**open and `open")]],
  ["# One\n## Two ##\n#no", [{ type: "heading", level: 1, children: ["One"] }, { type: "heading", level: 2, children: ["Two"] }, paragraph("#no")]],
  ["- a\n- b\n  - c\n\n    d\n- e", [list([[paragraph("a")], [paragraph("b"), list([[paragraph("c"), paragraph("d")]], { loose: true })], [paragraph("e")]])]],
  ["3. a\n4. b", [list([[paragraph("a")], [paragraph("b")]], { ordered: true, start: 3 })]],
  ["- a\n\n- b", [list([[paragraph("a")], [paragraph("b")]], { loose: true })]],
  ["```rust\nfn f() {}\n\n\tx\n```\nafter", [{ type: "code", language: "rust", text: "fn f() {}\n\n\tx" }, paragraph("after")]],
  ["~~~\n```\n~~~", [{ type: "code", language: "", text: "```" }]],
  ["```\nnever closed", [{ type: "code", language: "", text: "never closed" }]],
  ["1. x\n   ```sh\n   ls\n   ```\n2. y", [list([[paragraph("x"), { type: "code", language: "sh", text: "ls" }], [paragraph("y")]], { ordered: true })]],
  ["> a\n> - b\n\nc", [{ type: "quote", children: [paragraph("a"), list([[paragraph("b")]])] }, paragraph("c")]],
  ["a\n***\n- - -", [paragraph("a"), { type: "rule" }, { type: "rule" }]],
  ["| a | b |\n|:-:|--:|\n| `x\\|y` | **z** |\n| one |\nend", [
    { type: "table", aligns: ["center", "right"], head: [["a"], ["b"]], rows: [[[{ type: "code", text: "x|y" }], [{ type: "strong", children: ["z"] }]], [["one"], []]] },
    paragraph("end"),
  ]],
  ["[a [b](https://x.example/(1)) c](https://y.example)", [paragraph("[a ", { type: "link", href: "https://x.example/(1)", children: ["b"] }, " c](", { type: "link", href: "https://y.example/", children: ["https://y.example"] }, ")")]],
  ["(see https://x.example/a_b.) <b>", [paragraph("(see ", { type: "link", href: "https://x.example/a_b", children: ["https://x.example/a_b"] }, ".) <b>")]],
  ["[x](javascript:alert(1)) [y](mailto:a@b.c)", [paragraph("[x](javascript:alert(1)) [y](mailto:a@b.c)")]],
];

const STREAM = `# Title
Some **bold**, *slanted* and \`code\` with [a link](https://x.example/y_(z)).
Second line

1. one
   - nested *deep*

     more of it
2. two

| a | b |
|---|:-:|
| 1 | \`2|3\` |

\`\`\`python
def f(x):
\treturn "**no**"

\`\`\`
> quoted
> 1. list
---
<script>alert(1)</script> and ~~gone~~

~~~
never closed`;

// What long texts begin with, repeat and end with: whatever they hold, they are read in a time that
// grows with their length.
const LONG = [
  ...["[", "*a_ ", "`a``b```", ">", "- ", "[a](b ", "x", "h", "|a|\n|-|\n", "http://", "<https://", "**", "  - x\n", "|`", "_a*", "![", "\\"].map(piece => ["", piece, ""]),
  ["#", " ", "x"],
  ["#", " #", "x"],
  ["a|b\n", " ", "-x|"],
  ["```", " ", "`"],
  ["[a](", " ", "x"],
  ["` ", "a", "`"],
  ["https://x.example/", ".", "x"],
  ["-", " ", "x"],
];

export async function readsMarkdown(page, check) {
  const trees = await page.evaluate(async texts => {
    const { parse } = await import("/motley/page/blocks.js");
    return texts.map(parse);
  }, CASES.map(one => one[0]));
  CASES.forEach(([text, tree], at) => {
    const [found, wanted] = [JSON.stringify(sorted(trees[at])), JSON.stringify(sorted(tree))];
    check(found === wanted, `${text}\nis read as\n${found}\nnot\n${wanted}`);
  });
  const torn = await page.evaluate(tornStreams, STREAM);
  check(torn.cuts > 300 && torn.different.length === 0, "cut at " + torn.different + " it looks different");
  const slow = await page.evaluate(async pieces => {
    const { parse } = await import("/motley/page/blocks.js");
    const time = ([begin, piece, end]) => {
      const begun = performance.now();
      parse(begin + piece.repeat(Math.ceil(100000 / piece.length)) + end);
      return [begin + piece + end, performance.now() - begun];
    };
    return pieces.map(time).filter(([, took]) => took > 2000);
  }, LONG);
  check(!slow.length, "slow: " + JSON.stringify(slow));
}

// In the page: a text in two parts, and letter by letter, ends as the whole text does.
async function tornStreams(text) {
  const { showMarkdown } = await import("/motley/page/dom.js");
  const shown = states => {
    const place = document.createElement("div");
    states.forEach(state => showMarkdown(place, state));
    place.normalize();
    return new XMLSerializer().serializeToString(place);
  };
  const whole = shown([text]);
  const cuts = [...text].map((_, at) => at);
  const different = cuts.filter(at => shown([text.slice(0, at), text]) !== whole);
  if (shown(cuts.map(at => text.slice(0, at + 1))) !== whole) different.push("every letter");
  return { cuts: cuts.length, different };
}

// Keys in one order, so that trees can be compared as texts.
function sorted(tree) {
  if (Array.isArray(tree)) return tree.map(sorted);
  if (tree === null || typeof tree !== "object") return tree;
  return Object.fromEntries(Object.keys(tree).sort().map(key => [key, sorted(tree[key])]));
}

// Drives the page at `/` in headless Chromium: a message is sent, its answer streams,
// the heat map changes and shows where each expert is. Called by page.rs with the module to
// load, the browser, the URL and where to put screenshots.
const [module, browserPath, url, shots] = process.argv.slice(2);
const { chromium } = await import(module);
const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
for (const colorScheme of ["light", "dark"]) {
  const page = await browser.newPage({ colorScheme, viewport: { width: 1280, height: 800 } });
  const errors = [];
  page.on("pageerror", error => errors.push(String(error)));
  page.on("console", message => message.type() === "error" && errors.push(message.text()));
  await page.goto(url);
  await page.waitForFunction(() => document.getElementById("shape").textContent.includes("×"));
  const heat = () => page.evaluate(() => document.getElementById("heat").toDataURL());
  const before = await heat();
  await page.fill("#text", "What does a lighthouse keeper do every evening?");
  await page.press("#text", "Enter");
  const longer = length =>
    page.waitForFunction(
      length => (document.querySelector(".assistant")?.textContent.length ?? 0) > length,
      length,
      { timeout: 60000 },
    );
  await longer(10);
  await longer(70);
  await page.waitForTimeout(1500);
  if (before === (await heat())) throw new Error("the heat map did not change");
  // Some experts are in memory and some on disk; a full square and a dot differ at their corner.
  const seen = await page.evaluate(async () => {
    const dashboard = await (await fetch("/motley/dashboard")).json();
    const canvas = document.getElementById("heat"), paint = canvas.getContext("2d");
    const cell = canvas.width / dashboard.experts;
    const painted = (x, y) => paint.getImageData(x * cell, y * cell, 1, 1).data[3] > 0;
    const corners = dashboard.layers.flatMap((_, y) => [...Array(dashboard.experts).keys()].map(x => painted(x, y)));
    return { where: document.getElementById("where").textContent, squares: corners.filter(Boolean).length, all: corners.length };
  });
  const [inMemory, inAll] = seen.where.match(/^(\d+) of (\d+) in memory$/).slice(1).map(Number);
  if (inAll !== seen.all || inMemory !== seen.squares || !(0 < inMemory && inMemory < inAll))
    throw new Error("the map and its legend disagree: " + JSON.stringify(seen));
  await page.screenshot({ path: `${shots}/page-${colorScheme}.png` });
  await page.click("#new");
  if (await page.locator(".turn").count()) throw new Error("a new chat is not empty");
  if (errors.length) throw new Error(errors.join("\n"));
  await page.close();
}
await browser.close();
console.log("page ok");

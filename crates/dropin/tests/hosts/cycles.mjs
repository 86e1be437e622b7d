// One process that loads a model, computes, and frees everything, again and again.
// node cycles.mjs PACKAGES MODEL CYCLES → one line of JSON: what the process holds early and late
import fs from "node:fs";
import path from "node:path";
import {pathToFileURL} from "node:url";

const [packages, modelPath, cycles] = process.argv.slice(2);
const entry = path.join(packages, "node_modules/node-llama-cpp/dist/index.js");
const {getLlama, LlamaLogLevel} = await import(pathToFileURL(entry));
const llama = await getLlama({gpu: false, build: "never", logLevel: LlamaLogLevel.error, maxThreads: 1});
const held = () => {
    globalThis.gc?.();
    const status = fs.readFileSync("/proc/self/status", "utf8");
    const number = (key) => Number(status.match(new RegExp(`${key}:\\s+(\\d+)`))[1]);
    return {
        anonKib: number("RssAnon"), threads: number("Threads"),
        files: fs.readdirSync("/proc/self/fd").length
    };
};
const answers = new Set();
let early;
for (let n = 0; n < Number(cycles); n++) {
    const model = await llama.loadModel({modelPath, gpuLayers: 0});
    const context = await model.createContext({contextSize: 256, threads: 1});
    const tokens = [];
    for await (const token of context.getSequence().evaluate(model.tokenize("Once upon a time"), {temperature: 0})) {
        tokens.push(token);
        if (tokens.length >= 4) break;
    }
    answers.add(tokens.join(" "));
    await context.dispose();
    await model.dispose();
    if (n === Math.floor(Number(cycles) / 5)) early = held();
}
const late = held();
await llama.dispose();
console.log(JSON.stringify({answers: [...answers], early, late}));

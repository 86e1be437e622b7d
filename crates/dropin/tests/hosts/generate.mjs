// A host as people have it: node-llama-cpp with its prebuilt llama.cpp, unchanged.
// node generate.mjs PACKAGES MODEL [mapped|read] [models] → one line of JSON
import fs from "node:fs";
import path from "node:path";
import {pathToFileURL} from "node:url";

const [packages, modelPath, loading = "mapped", models = "1"] = process.argv.slice(2);
const entry = path.join(packages, "node_modules/node-llama-cpp/dist/index.js");
const {getLlama, LlamaLogLevel} = await import(pathToFileURL(entry));
const buffers = [];
const llama = await getLlama({
    gpu: false, build: "never", logLevel: LlamaLogLevel.info, maxThreads: 1,
    logger: (_, line) => { if (line.includes("model buffer size")) buffers.push(line.trim()); }
});
const kib = (file, key) => Number(fs.readFileSync(file, "utf8").match(new RegExp(`${key}:\\s+(\\d+)`))[1]);
const readBefore = kib("/proc/self/io", "read_bytes");
const answers = [];
let loaded;
const open = [];
for (let n = 0; n < Number(models); n++)
    open.push(await llama.loadModel({modelPath, gpuLayers: 0, useMmap: loading === "mapped"}));
loaded = {
    residentKib: kib("/proc/self/status", "VmRSS"),
    readBytes: kib("/proc/self/io", "read_bytes") - readBefore
};
for (const model of open) {
    const context = await model.createContext({contextSize: 512, threads: 1});
    const sequence = context.getSequence();
    const tokens = [];
    const prompt = model.tokenize("The history of the city begins in the early");
    for await (const token of sequence.evaluate(prompt, {temperature: 0})) {
        tokens.push(token);
        if (tokens.length >= 32) break;
    }
    answers.push(model.detokenize(tokens));
    await context.dispose();
}
for (const model of open) await model.dispose();
await llama.dispose();
console.log(JSON.stringify({release: llama.llamaCppRelease?.release, answers, buffers, ...loaded}));

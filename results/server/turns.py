"""An agent's turns against a server with OpenAI's API: what each computes, and its first token.

    python3 turns.py URL [--turns 20] [--words 9300] [--keep FILE]

With --keep the conversation is written to FILE and goes on from there at the next call, so that a server
can be restarted between two. Prints one line of JSON per turn. `computed` is what the server says of itself: Motley's usage, or
`timings` of llama.cpp's server.
"""

import argparse
import json
import os
import random
import time
import urllib.request


def words(count, seed):
    draw = random.Random(seed)
    syllables = ["ka", "lo", "mi", "ru", "te", "sa", "no", "pe"]
    return " ".join("".join(draw.choices(syllables, k=2)) for _ in range(count))


def ask(url, messages):
    body = {
        "model": "any",
        "messages": messages,
        "max_tokens": 16,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    request = urllib.request.Request(
        url + "/v1/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    started, first, text, last = time.monotonic(), None, "", {}
    with urllib.request.urlopen(request, timeout=900) as response:
        for line in response:
            if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
                continue
            chunk = json.loads(line[6:])
            last = {**last, **{key: chunk[key] for key in ("usage", "timings") if chunk.get(key)}}
            for choice in chunk["choices"]:
                delta = choice["delta"]
                piece = delta.get("content") or delta.get("reasoning_content") or ""
                if piece and first is None:
                    first = time.monotonic() - started
                text += delta.get("content") or ""
    usage = last["usage"]
    computed = usage["prompt_tokens"] - usage["prompt_tokens_details"]["cached_tokens"]
    computed = last.get("timings", {}).get("prompt_n", computed)
    return text, usage["prompt_tokens"], computed, first


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--words", type=int, default=9300)
    parser.add_argument("--keep")
    parsed = parser.parse_args()
    messages, before = [{"role": "system", "content": words(parsed.words, 0)}], 0
    if parsed.keep and os.path.exists(parsed.keep):
        with open(parsed.keep) as file:
            messages, before = json.load(file)
    start = len(messages) // 2 + 1
    for turn in range(start, start + parsed.turns):
        messages.append({"role": "user", "content": words(33, turn)})
        text, prompt, computed, first = ask(parsed.url, messages)
        row = {"turn": turn, "prompt": prompt, "new": prompt - before, "computed": computed}
        print(json.dumps({**row, "first_s": round(first or 0, 3)}), flush=True)
        messages.append({"role": "assistant", "content": text or "."})
        before = prompt
    if parsed.keep:
        with open(parsed.keep, "w") as file:
            json.dump([messages, before], file)


main()

#!/usr/bin/env python3
"""How long answers take beside other programs that want the cores too.

    neighbours.py URL --answers 100 --tokens 64 --compile FILE.cpp

Asks one question after the other, alone first and then beside two compilers with `nice -n 19`, which
compile FILE.cpp again and again; with --own-session as if started from another terminal, where Linux
shares the cores between sessions whatever their programs' priorities (autogroups). Prints median, p90, p99 and the longest of both, and their ratios to
the median of the same part.
"""

import argparse
import json
import statistics
import subprocess
import time
import urllib.request


def ask(url, number, tokens):
    body = {
        "prompt": f"Story {number}. Once upon a time there was",
        "max_tokens": tokens, "temperature": 0, "ignore_eos": True,
    }
    request = urllib.request.Request(
        url + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    begun = time.monotonic()
    with urllib.request.urlopen(request, timeout=600) as response:
        answer = json.load(response)
    assert answer["usage"]["completion_tokens"] == tokens, answer
    return time.monotonic() - begun


def part(name, times):
    times = sorted(times)
    at = lambda share: times[min(len(times) - 1, int(share * len(times)))]
    median = statistics.median(times)
    print(f"{name:8} {len(times)} answers: median {median:.3f} s, p90 {at(0.9):.3f}, p99 {at(0.99):.3f}, "
          f"longest {times[-1]:.3f}; p99 / median {at(0.99) / median:.2f}", flush=True)
    return median


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--answers", type=int, default=100)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--compile", required=True)
    parser.add_argument("--flags", default="")
    parser.add_argument("--own-session", action="store_true", help="as from another terminal")
    args = parser.parse_args()
    ask(args.url, -1, 8)
    alone = part("alone", [ask(args.url, n, args.tokens) for n in range(args.answers)])
    command = f"while :; do nice -n 19 clang++-16 -O3 {args.flags} -c {args.compile} -o /dev/null; done"
    own = args.own_session
    compilers = [subprocess.Popen(["sh", "-c", command], start_new_session=own) for _ in range(2)]
    try:
        time.sleep(3)
        times = [ask(args.url, n + 1000, args.tokens) for n in range(args.answers)]
    finally:
        for compiler in compilers:
            children = subprocess.run(["pgrep", "-P", str(compiler.pid)], capture_output=True, text=True)
            compiler.kill()
            for child in children.stdout.split():
                subprocess.run(["kill", child])
    beside = part("beside", times)
    print(f"beside / alone, medians: {beside / alone:.2f}")


main()

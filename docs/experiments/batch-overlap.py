"""How many experts a step reads when its streams are chosen by shared experts (M10).

    python3 docs/experiments/batch-overlap.py TRACE…

TRACE is one JSON object per token with `layers` (waste), or a route_trace CSV (BigMoeOnEdge).
Every token of a trace stands for a stream that decodes it next; what is known before the step
is the token before. 64 such streams are served 16 at a time: in any order, in groups chosen
greedily by the experts of the last token, in groups chosen by the experts of the coming token
(which nobody knows: the bound), and all 64 in one step. Prints experts read per layer and
token, and the ratio to any order.
"""

import csv
import json
import random
import sys

STREAMS, GROUP, TRIALS = 64, 16, 40


def tokens_of(path):
    """Per token a list of sets, one per layer."""
    if path.endswith(".jsonl"):
        rows = (json.loads(line) for line in open(path))
        return [[set(layer) for layer in row["layers"]] for row in rows if "layers" in row]
    lines = [line for line in open(path) if not line.startswith("#")]
    tokens = {}
    for row in csv.DictReader(lines):
        if row["phase"].startswith("d") or row["phase"] == "1":
            at = (int(row["turn"]), int(row["step"]))
            layers = tokens.setdefault(at, {})
            layers.setdefault(int(row["layer"]), set()).add(int(row["expert"]))
    return [[layers[k] for k in sorted(layers)] for _, layers in sorted(tokens.items())]


def read(group, now):
    """Experts a step with these streams reads, all layers together."""
    return sum(len(set().union(*experts)) for experts in zip(*(now[s] for s in group)))


def greedy(streams, seen):
    """Groups in which each next stream adds the fewest experts it would have used in `seen`."""
    left, groups = list(streams), []
    while left:
        group = [left.pop(0)]
        have = [set(layer) for layer in seen[group[0]]]
        while left and len(group) < GROUP:
            best = min(left, key=lambda s: sum(len(e - h) for e, h in zip(seen[s], have)))
            left.remove(best)
            group.append(best)
            for have_layer, layer in zip(have, seen[best]):
                have_layer |= layer
        groups.append(group)
    return groups


def main():
    print(f"{'trace':28} {'any order':>9} {'last token':>16} {'coming token':>16} {'all at once':>16}")
    for path in sys.argv[1:]:
        tokens = [token for token in tokens_of(path) if token]
        layers = min(len(token) for token in tokens)
        draw = random.Random(0)
        sums = [0.0] * 4
        for _ in range(TRIALS):
            places = draw.sample(range(1, len(tokens)), min(STREAMS, len(tokens) - 1))
            before, now = [tokens[p - 1] for p in places], [tokens[p] for p in places]
            streams = list(range(len(places)))
            any_order = [streams[i : i + GROUP] for i in range(0, len(streams), GROUP)]
            ways = [any_order, greedy(streams, before), greedy(streams, now), [streams]]
            for at, groups in enumerate(ways):
                sums[at] += sum(read(g, now) for g in groups) / len(places) / layers
        means = [value / TRIALS for value in sums]
        shown = [f"{mean:8.2f} ({mean / means[0]:4.2f} ×)" for mean in means[1:]]
        name = path.rsplit("/", 1)[-1]
        print(f"{name[:28]:28} {means[0]:9.2f} " + " ".join(f"{text:>16}" for text in shown))


main()

"""Is a resident expert in place of a cold one better than leaving the cold one out? Measured without the
engine: a forward pass in numpy, a simulated cache, and a table of how alike experts are.

    pip install numpy gguf tokenizers
    python substitute.py FOLDER-OF-TINY-WIKI-MOE > substitute.json

FOLDER has tiny-wiki-moe-f16.gguf, golden.json, golden_last_logits.f32 and val.txt. The first windows of
val.txt are evaluated, a sixth of the rest calibrates. Takes some minutes on two cores.
"""

import json
import multiprocessing
import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import gguf
import numpy as np
import tokenizers

WINDOW, EVALUATED, HEADS, KV_HEADS, HEAD, EPS, BASE = 256, 24, 4, 2, 64, np.float32(1e-6), 10000.0
LAYERS, EXPERTS, SLOTS = 6, 32, 4
CAPACITY = [12, 12, 12, 12, 11, 11]  # experts of each layer that stay in memory: 70 of 192
ORDER = [("own cache", 1.0), ("same pairs", 1.0), ("own cache", 0.5), ("own cache", 0.75)]
GIVEN = {}
POLICIES = {  # kind, whether scaled (or how much the others are), largest error
    "left out, others scaled (--skip-cold)": ("out", 1.0, 0),
    "left out, others as they are": ("out", 0.0, 0),
    "left out, others scaled half as much": ("out", 0.5, 0),
    "nearest resident": ("table", False, np.inf),
    "nearest resident, scaled": ("table", True, np.inf),
    "oracle": ("oracle", False, np.inf),
    "oracle, scaled": ("oracle", True, np.inf),
    "the router's next resident": ("router", False, np.inf),
    "its mean output": ("mean", False, 0),
    "nearest resident, scaled, if error < 0.9": ("table", True, 0.9),
    "nearest resident, scaled, if error < 0.7": ("table", True, 0.7),
    "nearest resident, scaled, if error < 0.5": ("table", True, 0.5),
}


class Model:
    def __init__(self, folder):
        reader = gguf.GGUFReader(folder / "tiny-wiki-moe-f16.gguf")
        self.tensors = {t.name: np.array(t.data, np.float32) for t in reader.tensors}
        words = reader.fields["tokenizer.ggml.tokens"].contents()
        merges = [tuple(merge.split(" ")) for merge in reader.fields["tokenizer.ggml.merges"].contents()]
        words = {word: number for number, word in enumerate(words)}
        self.tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(words, merges))
        self.tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)

    def of(self, layer, name):
        return self.tensors[f"blk.{layer}.{name}.weight"]

    def attention(self, layer, x, windows):
        """[tokens, width] -> the same; tokens of a window look back within it."""
        x = norm(x, self.of(layer, "attn_norm"))
        heads = lambda name, n: (x @ self.of(layer, name).T).reshape(windows, -1, n, HEAD).swapaxes(1, 2)
        q = rotate(norm(heads("attn_q", HEADS), self.of(layer, "attn_q_norm")))
        k = rotate(norm(heads("attn_k", KV_HEADS), self.of(layer, "attn_k_norm")))
        k, v = (np.repeat(m, HEADS // KV_HEADS, 1) for m in (k, heads("attn_v", KV_HEADS)))
        scores = q @ k.swapaxes(2, 3) / np.sqrt(np.float32(HEAD))
        scores += np.triu(np.full(scores.shape[2:], -np.inf, np.float32), 1)
        return (softmax(scores) @ v).swapaxes(1, 2).reshape(len(x), -1) @ self.of(layer, "attn_output").T

    def expert(self, layer, number, x):
        gate, up = (x @ self.of(layer, name)[number].T for name in ("ffn_gate_exps", "ffn_up_exps"))
        return (gate / (1 + np.exp(-gate)) * up) @ self.of(layer, "ffn_down_exps")[number].T

    def forward(self, ids, block):
        """Logits of windows of tokens; `block(layer, rows, chances)` computes the experts."""
        x = self.tensors["token_embd.weight"][ids.reshape(-1)]
        for layer in range(LAYERS):
            x = x + self.attention(layer, x, len(ids))
            rows = norm(x, self.of(layer, "ffn_norm"))
            x = x + block(layer, rows, softmax(rows @ self.of(layer, "ffn_gate_inp").T))
        return norm(x, self.tensors["output_norm.weight"]) @ self.tensors["output.weight"].T

    def mix(self, layer, rows, experts, weights):
        """Sum of the experts `[tokens, any]` of each row; no row names one twice with weight."""
        out = np.zeros_like(rows)
        for e in range(EXPERTS):
            token, slot = np.nonzero((experts == e) & (weights != 0))
            out[token] += weights[token, slot, None] * self.expert(layer, e, rows[token])
        return out


def norm(x, weight):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * weight


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def rotate(x):
    angles = np.arange(x.shape[2])[:, None] * BASE ** (-np.arange(HEAD // 2) / (HEAD // 2))
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    first, second = x[..., : HEAD // 2], x[..., HEAD // 2 :]
    return np.concatenate([first * cos - second * sin, first * sin + second * cos], -1)


def weigh(chances, experts):
    weights = np.take_along_axis(chances, experts, 1)
    return weights / weights.sum(1, keepdims=True)


def route(chances):
    """The chosen experts, strongest first, and their weights, which sum to 1."""
    experts = np.argsort(-chances, 1, kind="stable")[:, :SLOTS]
    return experts, weigh(chances, experts)


def may_go(weights, part):
    """Which pairs are weak: below a part of an even share, and not the strongest."""
    return (weights < part / SLOTS) & (np.arange(SLOTS) > 0)


class Whole:
    """The model as it is; remembers what was routed."""

    def __init__(self, model):
        self.model, self.routed = model, {}

    def __call__(self, layer, rows, chances):
        self.routed[layer] = route(chances)
        return self.model.mix(layer, rows, *self.routed[layer])


class Calibration:
    """How alike experts are on rows routed to one of them: [0] all rows, [1] rows that want it weakly."""

    def __init__(self, model):
        self.model = model
        self.products, self.squares = np.zeros((2, 2, LAYERS, EXPERTS, EXPERTS))  # [.., cold, other]
        self.sums, self.counts = np.zeros((LAYERS, EXPERTS, 256)), np.zeros((LAYERS, EXPERTS, 1))

    def __call__(self, layer, rows, chances):
        experts, weights = route(chances)
        outputs = np.stack([self.model.expert(layer, e, rows) for e in range(EXPERTS)], 1)
        products = outputs @ outputs.transpose(0, 2, 1)  # [tokens, cold, other]
        wide = np.zeros((3, *chances.shape), np.float32)  # by expert, not by slot
        for values, those in zip(wide, [np.ones_like(weights), may_go(weights, 1.0), weights]):
            np.put_along_axis(values, experts, those.astype(np.float32), 1)
        for which, wanted in enumerate(wide[:2]):
            self.products[which, layer] += np.einsum("tc,tcr->cr", wanted, products)
            self.squares[which, layer] += wanted.T @ np.einsum("trr->tr", products)
        self.sums[layer] += np.einsum("tc,tcw->cw", wide[1], outputs)
        self.counts[layer, :, 0] += wide[1].sum(0)
        return np.einsum("tr,trw->tw", wide[2], outputs)

    def table(self, which):
        """Scales and errors of the best scaled replacement, and errors of the unscaled one."""
        own = np.einsum("lcc->lc", self.squares[which])[..., None]
        found = replacement(self.products[which], self.squares[which], own)
        for errors in found[1:]:
            errors[:, np.arange(EXPERTS), np.arange(EXPERTS)] = np.inf
        return found


def replacement(product, square, own):
    """Scale c that makes |a - c b|² least, that error as part of |a|², and the error with c = 1."""
    square = np.maximum(square, 1e-30)
    return product / square, 1 - product**2 / (square * own), (own - 2 * product + square) / own


def simulate(layer, experts, weights, part):
    """Token by token, least recently used: the pairs that are left out, and what is in memory while the
    token is computed. Nothing is left out while there is room, and what is kept is read."""
    gone, resident = may_go(weights, part), np.zeros((len(experts), EXPERTS), bool)
    kept = {}  # in order of use
    for token, chosen in enumerate(experts.tolist()):
        full = len(kept) == CAPACITY[layer]
        gone[token] = [full and weak and e not in kept for e, weak in zip(chosen, gone[token])]
        for expert in (e for e, left in zip(chosen, gone[token]) if not left):
            kept.pop(expert, None)
            kept[expert] = True
        while len(kept) > CAPACITY[layer]:
            del kept[next(iter(kept))]
        resident[token, list(kept)] = True
    return gone, resident


class Approximate:
    """Leaves out or replaces; with `fixed`, chosen experts, dropped pairs and memory are given."""

    def __init__(self, model, policy, part, table, means, fixed):
        self.model, self.part, self.table, self.means, self.fixed = model, part, table, means, fixed
        self.kind, self.scaled, self.most = policy
        self.counted = np.zeros(4)  # pairs, of them dropped, their weight in even shares, replaced ones

    def __call__(self, layer, rows, chances):
        experts, weights = route(chances)
        if self.fixed:
            experts, gone, resident = self.fixed[layer]
            weights = weigh(chances, experts)
        else:
            gone, resident = simulate(layer, experts, weights, self.part)
        others, shares = np.zeros_like(experts), np.zeros_like(weights)
        if self.most:
            self.replace(layer, rows, chances, experts, weights, gone, resident, others, shares)
        missing = gone & (shares == 0)
        self.counted += gone.size, gone.sum(), weights[gone].sum() * SLOTS, (gone & ~missing).sum()
        both = np.concatenate([np.where(gone, 0, weights), shares], 1)
        if self.kind == "router":
            both /= both.sum(1, keepdims=True)
        elif self.kind in ("out", "table"):
            factor = 1 / (1 - np.where(missing, weights, 0).sum(1, keepdims=True))
            both *= 1 + (factor - 1) * (self.scaled if self.kind == "out" else 1)
        out = self.model.mix(layer, rows, np.concatenate([experts, others], 1), both)
        if self.kind == "mean":
            out += np.einsum("ts,tsw->tw", np.where(gone, weights, 0), self.means[layer][experts])
        return out

    def replace(self, layer, rows, chances, experts, weights, gone, resident, others, shares):
        """For each dropped pair the best resident expert that the token does not use, and its weight."""
        free = resident.copy()
        np.put_along_axis(free, experts, False, 1)
        for slot in range(1, SLOTS):
            tokens = np.nonzero(gone[:, slot])[0]
            cold = experts[tokens, slot]
            if self.kind == "oracle":
                known = free[tokens] | np.eye(EXPERTS, dtype=bool)[cold]
                outputs = np.zeros((EXPERTS, len(tokens), rows.shape[1]), np.float32)
                for e in range(EXPERTS):
                    outputs[e, known[:, e]] = self.model.expert(layer, e, rows[tokens[known[:, e]]])
                own = outputs[cold, np.arange(len(tokens))]
                product = np.einsum("rtw,tw->tr", outputs, own)
                scale, *errors = replacement(product, (outputs**2).sum(2).T, (own**2).sum(1)[:, None])
            else:
                scale, *errors = (t[layer][cold] for t in self.table)
            score = -chances[tokens] if self.kind == "router" else errors[0 if self.scaled else 1]
            score = np.where(free[tokens], score, np.inf)
            best = score.argmin(1)
            at = np.arange(len(tokens)), best
            share = weights[tokens, slot] * (scale[at] if self.scaled else 1)
            if self.kind == "router":  # as if it had been chosen with the token's others
                share = chances[tokens, best] * weights[tokens, 0] / chances[tokens, experts[tokens, 0]]
            good = score[at] < self.most
            others[tokens, slot], shares[tokens, slot] = best, np.where(good, share, 0)
            free[tokens[good], best[good]] = False


def log_chances(logits):
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def compare(ids, whole, logits):
    """Per window: KL divergence, excess of negative log likelihood, same likeliest token, own likelihood."""
    rows = []
    for window, base, other in zip(ids, *(m.reshape(*ids.shape, -1) for m in (whole, logits))):
        base, other = log_chances(base), log_chances(other)
        at = np.arange(len(window) - 1), window[1:]
        kl = (np.exp(base) * (base - other)).sum(1).mean()
        same = (base.argmax(1) == other.argmax(1)).mean()
        rows.append((kl, (base[at] - other[at]).mean(), same, -other[at].mean()))
    return np.array(rows, np.float64)


def rounded(value):
    return float(f"{value:.4g}")


def interval(statistic, *rows):
    """A figure and its 95 % interval, by a bootstrap over windows with the same draws for all."""
    draws = np.random.default_rng(1).integers(0, EVALUATED, (4000, EVALUATED))
    ends = np.percentile(statistic(*(r[draws].mean(1).T for r in rows)), [2.5, 97.5])
    return [rounded(v) for v in (statistic(*(r.mean(0) for r in rows)), *ends)]


def spread(values):
    names = ["least", "a tenth", "median", "nine tenths", "most"]
    return dict(zip(names, map(rounded, np.percentile(values, [0, 10, 50, 90, 100]))))


def check(model, folder):
    """Largest difference from logits and experts that were computed elsewhere."""
    golden = json.loads((folder / "golden.json").read_text())
    last = np.fromfile(folder / "golden_last_logits.f32", np.float32).reshape(-1, 4096)
    most, same = 0.0, True
    for prompt, expected in zip(golden["prompts"], last):
        block = Whole(model)
        most = max(most, np.abs(model.forward(np.array([prompt["token_ids"]]), block)[-1] - expected).max())
        same &= np.array_equal(prompt["experts"], [block.routed[layer][0] for layer in range(LAYERS)])
        same &= model.tokenizer.encode(prompt["text"]).ids == prompt["token_ids"]
    return {"largest_logit_difference": rounded(most), "same_tokens_and_experts": bool(same)}


def alike(calibration, fixed):
    """How large the error of the best replacement of an expert is."""
    table, near = calibration.table(1), []
    for layer, (_, _, resident) in fixed[1.0].items():
        resident = resident[len(resident) // 2 :: 16]
        near.append(np.where(resident[:, None], table[1][layer], np.inf).min(2)[~resident])
    own = np.einsum("lcc->lc", calibration.squares[1]) * calibration.counts[..., 0]
    return {
        "any expert, all rows": spread(calibration.table(0)[1].min(2)),
        "any expert, rows that want the cold one weakly": spread(table[1].min(2)),
        "the same, unscaled": spread(table[2].min(2)),
        "the same, scaled, resident experts only": spread(np.concatenate(near)),
        "scale of the best": spread(np.take_along_axis(table[0], table[1].argmin(2)[..., None], 2)),
        "the cold expert's mean output": spread(1 - (calibration.sums**2).sum(2) / own),
    }


def measure(asked):
    """One policy; runs in a process that was forked with what it needs."""
    mode, part, name = asked
    model, ids, base, table, means, fixed = GIVEN.values()
    given = fixed[part] if mode == "same pairs" else None
    block = Approximate(model, POLICIES[name], part, table, means, given)
    return compare(ids, base, model.forward(ids, block)), block.counted


def main(folder):
    model = Model(folder)
    result = {"check": check(model, folder)}
    ids = np.array(model.tokenizer.encode((folder / "val.txt").read_text()).ids)
    ids = ids[: len(ids) // WINDOW * WINDOW].reshape(-1, WINDOW)
    ids, rest = ids[:EVALUATED], ids[EVALUATED::6]
    calibration, whole = Calibration(model), Whole(model)
    for start in range(0, len(rest), 8):
        model.forward(rest[start : start + 8], calibration)
    table, means = calibration.table(1), (calibration.sums / calibration.counts).astype(np.float32)
    base = model.forward(ids, whole)
    fixed = {part: {layer: (e, *simulate(layer, e, w, part)) for layer, (e, w) in whole.routed.items()}
             for _, part in ORDER}
    result |= {"tokens_evaluated": ids.size, "tokens_of_calibration": rest.size, "capacity": CAPACITY,
               "perplexity": rounded(np.exp(compare(ids, base, base)[:, 3].mean())),
               "error_of_the_best_substitute": alike(calibration, fixed), "policies": {}}
    print(json.dumps(result, indent=1), file=sys.stderr)

    GIVEN.update(model=model, ids=ids, base=base, table=table, means=means, fixed=fixed)
    asked, known = [(*which, name) for which in ORDER for name in POLICIES], {}
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for (mode, part, name), (rows, counted) in zip(asked, pool.imap(measure, asked)):
            pairs, dropped, weight, replaced = counted
            known[mode, part, name] = rows
            found = {
                "kl": interval(lambda m: m[0], rows),
                "perplexity_times": interval(lambda m: np.exp(m[1]), rows),
                "same_likeliest": interval(lambda m: m[2], rows),
                "pairs_dropped": rounded(dropped / pairs),
                "weight_dropped": rounded(weight / pairs),
                "dropped_pairs_replaced": rounded(replaced / dropped),
            }
            scaled, unscaled, *_ = POLICIES  # the two ways of leaving out are what others are compared with
            if name != scaled:
                found["kl_times_scaled"] = interval(lambda m, n: m[0] / n[0], rows, known[mode, part, scaled])
            if name not in (scaled, unscaled):
                other = known[mode, part, unscaled]
                found["kl_times_unscaled"] = interval(lambda m, n: m[0] / n[0], rows, other)
                found["perplexity_times_unscaled"] = interval(lambda m, n: np.exp(m[1] - n[1]), rows, other)
            result["policies"].setdefault(f"{mode}, {part}", {})[name] = found
            print(mode, part, name, found, file=sys.stderr, flush=True)
    print(json.dumps(result, indent=1))


main(Path(sys.argv[1]))

"""Drives a running `motley serve` of an embedding model with the official `ollama` package.

Called by clients.rs with the server's URL, the key and the model's name. Every check
asserts; the last line says how many passed.
"""

import sys

import ollama

URL, KEY, MODEL = sys.argv[1:4]
client = ollama.Client(host=URL, headers={"Authorization": f"Bearer {KEY}"})


def vectors():
    made = client.embed("any-name", ["Gold", "The opposite of hot is cold."])
    assert made.model == MODEL and len(made.embeddings) == 2, made.model
    assert all(abs(sum(n * n for n in vector) - 1) < 1e-4 for vector in made.embeddings)
    assert made.prompt_eval_count >= 2 and made.total_duration > 0


def long_texts_are_cut():
    text = "word " * 20_000
    assert len(client.embed("any-name", text).embeddings) == 1
    try:
        client.embed("any-name", text, truncate=False)
        raise AssertionError("a text that does not fit was taken")
    except ollama.ResponseError as error:
        assert error.status_code == 400 and "too long" in error.error, error


def said():
    assert client.show(MODEL).capabilities == ["embedding"], client.show(MODEL).capabilities


CHECKS = [vectors, long_texts_are_cut, said]
for check in CHECKS:
    check()
print(f"{len(CHECKS)} passed")

"""Drives a running `motley serve` of an embedding model with the official `openai` package.

Called by clients.rs with the server's URL, the key and the model's name. Every check
asserts; the last line says how many passed.
"""

import math
import sys

import openai

URL, KEY, MODEL = sys.argv[1:4]
client = openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)
TEXTS = ["Gold", "The opposite of hot is cold.", "A village by the sea."]


def length(vector):
    return math.sqrt(sum(number * number for number in vector))


def vectors():
    # Asks for base64 by itself, and reads it.
    made = client.embeddings.create(model=MODEL, input=TEXTS)
    assert [text.index for text in made.data] == [0, 1, 2] and made.model == MODEL
    assert all(abs(length(text.embedding) - 1) < 1e-4 for text in made.data)
    assert made.usage.prompt_tokens == made.usage.total_tokens >= 3
    one = client.embeddings.create(model=MODEL, input=TEXTS[0], encoding_format="float")
    cosine = sum(a * b for a, b in zip(one.data[0].embedding, made.data[0].embedding))
    assert cosine > 0.999, cosine


def shorter():
    made = client.embeddings.create(model=MODEL, input=TEXTS[0], dimensions=32)
    assert len(made.data[0].embedding) == 32 and abs(length(made.data[0].embedding) - 1) < 1e-4


def no_answers():
    try:
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Hi"}])
        raise AssertionError("an embedding model answered")
    except openai.BadRequestError as error:
        assert "vectors" in str(error), error


CHECKS = [vectors, shorter, no_answers]
for check in CHECKS:
    check()
print(f"{len(CHECKS)} passed")

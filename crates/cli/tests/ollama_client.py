"""Drives a running `motley serve` with the official `ollama` package.

Called by clients.rs with the server's URL, the key and the model's name. Every check
asserts; the last line says how many passed.
"""

import json
import sys

import ollama

URL, KEY, MODEL = sys.argv[1:4]
client = ollama.Client(host=URL, headers={"Authorization": f"Bearer {KEY}"})
USER = [{"role": "user", "content": "Tell me something short."}]
GREEDY = {"temperature": 0, "num_predict": 16}
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 16}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = {
    "type": "function",
    "function": {"name": "get_weather", "description": "The weather in a city", "parameters": CITY},
}


def models():
    listed = client.list().models
    assert [model.model for model in listed] == [MODEL], listed
    assert listed[0].size > 0 and listed[0].details.format == "gguf", listed
    assert [model.model for model in client.ps().models] == [MODEL]
    shown = client.show("any-name")
    family = shown.details.family
    assert "completion" in shown.capabilities and shown.modelinfo[f"{family}.context_length"] == 512, shown


def answers():
    answer = client.chat("any-name", USER, options=GREEDY, keep_alive="5m", stream=False)
    assert answer.model == MODEL and answer.done and answer.message.role == "assistant"
    assert answer.done_reason in ("stop", "length") and 0 < answer.eval_count <= 16
    assert answer.prompt_eval_count > 0 and answer.total_duration >= answer.eval_duration > 0
    pieces = list(client.chat(MODEL, USER, options=GREEDY, stream=True))
    assert "".join(piece.message.content for piece in pieces) == answer.message.content
    assert [piece.done for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert pieces[-1].eval_count == answer.eval_count and pieces[0].created_at


def texts():
    answer = client.generate(MODEL, USER[0]["content"], options=GREEDY)
    chat = client.chat(MODEL, USER, options=GREEDY)
    assert answer.response == chat.message.content
    pieces = client.generate(MODEL, USER[0]["content"], options=GREEDY, stream=True)
    assert "".join(piece.response for piece in pieces) == answer.response
    raw = client.generate(MODEL, "1, 2, 3,", raw=True, options=GREEDY)
    assert raw.prompt_eval_count < answer.prompt_eval_count
    client.generate(MODEL, "Hi", system="Be brief.", options=GREEDY, think=False)
    assert client.generate(MODEL).done_reason == "load"


def formats():
    options = {"temperature": 1, "num_predict": 200}
    answer = client.chat(MODEL, USER, format=CITY, options=options)
    assert list(json.loads(answer.message.content)) == ["city"], answer
    stop = {"temperature": 0, "num_predict": 48}
    text = client.generate(MODEL, "Count", options=stop).response
    cut = text[len(text) // 2 :][:3]
    short = client.generate(MODEL, "Count", options={**stop, "stop": [cut]})
    assert short.response == text[: text.index(cut)] and short.done_reason == "stop"


def tools():
    answer = client.chat(MODEL, USER, tools=[WEATHER], options=GREEDY)
    call = {"function": {"name": "get_weather", "arguments": {"city": "Rome"}}}
    history = USER + [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "sunny", "tool_name": "get_weather"},
    ]
    more = client.chat(MODEL, history, tools=[WEATHER], options=GREEDY)
    assert more.prompt_eval_count > answer.prompt_eval_count


def errors():
    for wrong in (
        lambda: client.chat(MODEL, USER, options={"temperature": 3}),
        lambda: client.chat(MODEL, [{"role": "user", "content": "a", "images": [b"x"]}]),
        lambda: client.generate(MODEL, "a", suffix="b"),
        lambda: client.chat(MODEL, [{"role": "wizard", "content": "a"}]),
    ):
        try:
            wrong()
        except ollama.ResponseError as error:
            assert error.status_code == 400 and error.error, error
            continue
        raise AssertionError("not refused")
    try:
        ollama.Client(host=URL).list()
        raise AssertionError("no key opens")
    except ollama.ResponseError as error:
        assert error.status_code == 401 and "API key" in error.error, error


CHECKS = [models, answers, texts, formats, tools, errors]
for check in CHECKS:
    check()
    print(f"ok {check.__name__}", flush=True)
print(f"{len(CHECKS)} passed")

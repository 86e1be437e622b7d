"""Drives a running `motley serve` with the official `anthropic` package.

Called by clients.rs with the server's URL, the key and the model's name. Every check
asserts; the last line says how many passed.
"""

import json
import sys

import anthropic

URL, KEY, MODEL = sys.argv[1:4]
client = anthropic.Anthropic(base_url=URL, api_key=KEY, max_retries=0)
USER = [{"role": "user", "content": "Tell me something short."}]
WEATHER = {
    "name": "get_weather",
    "description": "The weather in a city",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 16}},
        "required": ["city"],
        "additionalProperties": False,
    },
}


def ask(temperature=0, **options):
    options.setdefault("messages", USER)
    options.setdefault("max_tokens", 16)
    options["extra_body"] = {"temperature": temperature}
    options.setdefault("model", "any-name")
    return client.messages.create(**options)


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


def answers():
    message = ask(system="Be brief.", metadata={"user_id": "u"})
    assert (message.type, message.role, message.model) == ("message", "assistant", MODEL)
    assert message.stop_reason in ("end_turn", "max_tokens")
    assert 0 < message.usage.output_tokens <= 16 and message.usage.input_tokens > 0
    assert ask(system="Be brief.").content == message.content


def streams():
    whole = ask()
    with client.messages.stream(model=MODEL, messages=USER, max_tokens=16, extra_body={"temperature": 0}) as stream:
        events = list(stream)
        message = stream.get_final_message()
    assert text_of(message) == text_of(whole), (message, whole)
    assert message.stop_reason == whole.stop_reason
    assert message.usage.output_tokens == whole.usage.output_tokens
    names = [event.type for event in events]
    assert names[0] == "message_start" and names[-1] == "message_stop", names
    raw = [event.type for event in ask(stream=True)]
    assert raw[0] == "message_start" and raw[-2:] == ["message_delta", "message_stop"], raw
    assert set(raw[1:-2]) <= {"content_block_start", "content_block_delta", "content_block_stop"}


def stops():
    text = text_of(ask(max_tokens=48))
    assert text, "the model says nothing"
    stop = text[len(text) // 2 :][:3]
    cut = ask(max_tokens=48, stop_sequences=["never said", stop])
    assert (cut.stop_reason, cut.stop_sequence) == ("stop_sequence", stop), cut
    assert text_of(cut).strip() == text[: text.index(stop)].strip(), (text, stop, cut)


def tools():
    for choice in ({"type": "tool", "name": "get_weather"}, {"type": "any", "disable_parallel_tool_use": True}):
        message = ask(tools=[WEATHER], tool_choice=choice, max_tokens=200, temperature=1)
        call = message.content[-1]
        assert message.stop_reason == "tool_use" and call.type == "tool_use", message
        assert call.name == "get_weather" and list(call.input) == ["city"], call
    with client.messages.stream(
        model=MODEL, messages=USER, tools=[WEATHER], tool_choice=choice, max_tokens=200
    ) as stream:
        names = [event.type for event in stream]
        final = stream.get_final_message()
    assert names.count("input_json") > 1 and list(final.content[-1].input) == ["city"], final
    history = USER + [
        {"role": "assistant", "content": [block.model_dump() for block in final.content]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": final.content[-1].id, "content": "sunny"},
            {"type": "text", "text": "And now?", "cache_control": {"type": "ephemeral"}},
        ]},
    ]
    ask(messages=history, tools=[WEATHER])
    ask(tools=[WEATHER], tool_choice={"type": "none"})


def schemas():
    form = {"type": "json_schema", "schema": WEATHER["input_schema"]}
    message = ask(output_config={"format": form}, max_tokens=200, temperature=1)
    assert list(json.loads(text_of(message))) == ["city"], message


def counts():
    blocks = [{"type": "text", "text": "You are helpful.", "cache_control": {"type": "ephemeral"}}]
    bill = [{"type": "text", "text": "x-anthropic-billing-header: cc_version=1.0; cch=0f3;"}]
    count = client.messages.count_tokens(model=MODEL, system=blocks, messages=USER).input_tokens
    billed = client.messages.count_tokens(model=MODEL, system=bill + blocks, messages=USER).input_tokens
    assert count == billed > 0, (count, billed)
    usage = ask(system=blocks, max_tokens=1).usage
    assert usage.input_tokens + usage.cache_read_input_tokens == count
    ask(thinking={"type": "disabled"})
    ask(thinking={"type": "enabled", "budget_tokens": 1024})


def refuses(kind, **options):
    try:
        ask(**options)
    except anthropic.APIStatusError as error:
        assert error.body["type"] == "error" and error.body["error"]["type"] == kind, error.body
        assert error.body["error"]["message"], error.body
        return error
    raise AssertionError(f"{options} was not refused")


def errors():
    refuses("invalid_request_error", max_tokens=0)
    refuses("invalid_request_error", temperature=3)
    refuses("invalid_request_error", messages=[])
    refuses("invalid_request_error", messages=USER + [{"role": "assistant", "content": "{"}])
    image = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    refuses("invalid_request_error", messages=[{"role": "user", "content": [image]}])
    refuses("invalid_request_error", tools=[{"type": "web_search_20250305", "name": "web_search"}])
    long = refuses("invalid_request_error", messages=[{"role": "user", "content": "word " * 20000}])
    assert "prompt is too long" in str(long), long
    try:
        client.with_options(api_key="wrong").messages.create(model=MODEL, messages=USER, max_tokens=1)
        raise AssertionError("a wrong key opens")
    except anthropic.AuthenticationError as error:
        assert error.body["error"]["type"] == "authentication_error", error.body


CHECKS = [answers, streams, stops, tools, schemas, counts, errors]
for check in CHECKS:
    check()
    print(f"ok {check.__name__}", flush=True)
print(f"{len(CHECKS)} passed")

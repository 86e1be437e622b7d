"""Drives a running `motley serve` with the official `openai` package.

Called by clients.rs with the server's URL, the key and the model's name. Every check
asserts; the last line says how many passed.
"""

import concurrent.futures
import json
import sys

import jsonschema
import openai

URL, KEY, MODEL, GENERATIONS = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
client = openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)
USER = [{"role": "user", "content": "Tell me something short."}]
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "colour": {"enum": ["red", "green", "blue"]},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 6}, "maxItems": 3},
        "alive": {"type": "boolean"},
    },
    "required": ["name", "age", "colour", "tags", "alive"],
    "additionalProperties": False,
}
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 16}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


def chat(**options):
    options.setdefault("messages", USER)
    options.setdefault("max_tokens", 16)
    options.setdefault("temperature", 0)
    return client.chat.completions.create(model=MODEL, **options)


def models():
    assert [model.id for model in client.models.list()] == [MODEL]
    assert client.models.retrieve(MODEL).id == MODEL
    # One model is served, so it answers to any name and says its own.
    other = client.chat.completions.create(model="other", messages=USER, max_tokens=1)
    assert other.model == MODEL


def answers():
    answer = chat()
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].finish_reason in ("stop", "length")
    assert 0 < answer.usage.completion_tokens <= 16
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    again = chat()
    assert again.choices[0].message.content == answer.choices[0].message.content


def streams():
    whole = chat(extra_body={"ignore_eos": True}).choices[0].message.content
    chunks = list(chat(stream=True, stream_options={"include_usage": True}, extra_body={"ignore_eos": True}))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole, (text, whole)
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].usage.completion_tokens == 16
    assert chunks[-2].choices[0].finish_reason == "length"


def completions():
    answer = client.completions.create(model=MODEL, prompt="1, 2, 3,", max_tokens=8, temperature=0)
    assert answer.choices[0].finish_reason in ("stop", "length")
    both = client.completions.create(
        model=MODEL, prompt=["1, 2, 3,", "A"], max_tokens=8, temperature=0, echo=True
    )
    assert both.choices[0].text == "1, 2, 3," + answer.choices[0].text
    assert both.choices[1].text.startswith("A")
    pieces = client.completions.create(
        model=MODEL, prompt="1, 2, 3,", max_tokens=8, temperature=0, stream=True
    )
    assert "".join(piece.choices[0].text for piece in pieces) == answer.choices[0].text


def stops():
    ask = {"prompt": "1, 2, 3,", "max_tokens": 24, "temperature": 0}
    whole = client.completions.create(model=MODEL, extra_body={"ignore_eos": True}, **ask)
    text = whole.choices[0].text
    stop = text[len(text) // 2 :][:3]
    cut = client.completions.create(model=MODEL, stop=[stop], extra_body={"ignore_eos": True}, **ask)
    assert cut.choices[0].text == text[: text.index(stop)], (text, stop, cut.choices[0].text)
    assert cut.choices[0].finish_reason == "stop"


def logprobs():
    answer = chat(logprobs=True, top_logprobs=3, extra_body={"ignore_eos": True})
    content = answer.choices[0].logprobs.content
    assert len(content) == 16
    for token in content:
        assert token.logprob <= 0 and len(token.top_logprobs) == 3
        # Greedy takes the likeliest.
        assert abs(token.top_logprobs[0].logprob - token.logprob) < 1e-5
        order = [top.logprob for top in token.top_logprobs]
        assert order == sorted(order, reverse=True)
    old = client.completions.create(model=MODEL, prompt="A", max_tokens=4, logprobs=2, temperature=0)
    assert len(old.choices[0].logprobs.tokens) == len(old.choices[0].logprobs.token_logprobs)


def several():
    answer = chat(n=3, temperature=1, seed=7, extra_body={"ignore_eos": True})
    texts = [choice.message.content for choice in answer.choices]
    assert len(texts) == 3 and len(set(texts)) > 1
    again = chat(n=3, temperature=1, seed=7, extra_body={"ignore_eos": True})
    assert texts == [choice.message.content for choice in again.choices]
    assert answer.usage.completion_tokens == 48
    chunks = list(chat(n=2, stream=True))
    assert {chunk.choices[0].index for chunk in chunks} == {0, 1}


def penalties():
    # Two words to choose from, forty times: without a penalty the model of random weights may say
    # one of them for ever, or not repeat a word of its own for long.
    picks = {"type": "array", "items": {"enum": ["yes", "no"]}, "minItems": 40, "maxItems": 40}
    schema = {"type": "object", "properties": {"picks": picks}, "required": ["picks"], "additionalProperties": False}
    form = {"type": "json_schema", "json_schema": {"name": "picks", "schema": schema, "strict": True}}

    def said(**options):
        answer = chat(max_tokens=600, response_format=form, **options)
        return json.loads(answer.choices[0].message.content)["picks"]

    plain, never = said(), said(frequency_penalty=2, presence_penalty=2)
    assert plain != never, plain
    assert abs(never.count("yes") - never.count("no")) <= abs(plain.count("yes") - plain.count("no")), (plain, never)


def schema_once(seed):
    answer = chat(
        temperature=1,
        seed=seed,
        max_tokens=300,
        response_format={"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA, "strict": True}},
    )
    assert answer.choices[0].finish_reason == "stop", answer
    jsonschema.validate(json.loads(answer.choices[0].message.content), SCHEMA)


def schemas():
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        done = list(pool.map(schema_once, range(GENERATIONS)))
    assert len(done) == GENERATIONS


def tool_calls():
    forced = {"type": "function", "function": {"name": "get_weather"}}
    for choice in (forced, "required"):
        answer = chat(tools=[WEATHER], tool_choice=choice, max_tokens=200, temperature=1, seed=1)
        assert answer.choices[0].finish_reason == "tool_calls", answer
        call = answer.choices[0].message.tool_calls[0]
        assert call.function.name == "get_weather" and call.id
        assert list(json.loads(call.function.arguments)) == ["city"]
    chunks = list(chat(tools=[WEATHER], tool_choice=forced, max_tokens=200, stream=True))
    first, *more = [c for chunk in chunks for c in (chunk.choices[0].delta.tool_calls or [])]
    assert (first.index, first.type, first.function.name) == (0, "function", "get_weather") and first.id
    assert first.function.arguments == "" and len(more) > 1, "arguments come in pieces"
    assert all((c.index, c.id, c.function.name) == (0, None, None) for c in more)
    arguments = "".join(c.function.arguments for c in more)
    whole = chat(tools=[WEATHER], tool_choice=forced, max_tokens=200).choices[0].message.tool_calls[0]
    assert arguments == whole.function.arguments, (arguments, whole)
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    call = {"id": first.id, "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
    history = USER + [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": first.id, "content": "sunny"},
    ]
    chat(messages=history, tools=[WEATHER])
    chat(tools=[WEATHER], tool_choice="none")


def respond(**options):
    options.setdefault("input", "Tell me something short.")
    options.setdefault("max_output_tokens", 16)
    options.setdefault("temperature", 0)
    return client.responses.create(model=MODEL, **options)


def responses():
    answer = respond(instructions="Be brief.")
    assert answer.object == "response" and answer.model == MODEL
    assert answer.status in ("completed", "incomplete"), answer
    same = chat(messages=[{"role": "system", "content": "Be brief."}] + USER)
    # The same prompt; what is said may differ in the last bits of other requests beside it.
    assert answer.usage.input_tokens == same.usage.prompt_tokens
    items = [{"role": "user", "content": [{"type": "input_text", "text": "Tell me something short."}]}]
    assert respond(instructions="Be brief.", input=items).usage.input_tokens == answer.usage.input_tokens
    with client.responses.stream(
        model=MODEL, input=items, instructions="Be brief.", temperature=0, max_output_tokens=16
    ) as stream:
        events = list(stream)
    assert [event.type for event in events[:2]] == ["response.created", "response.in_progress"]
    final = events[-1].response
    assert events[-1].type == f"response.{final.status}", events[-1]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    deltas = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert deltas == final.output_text


def kept_responses():
    first = respond(store=True)
    assert client.responses.retrieve(first.id).output_text == first.output_text
    second = respond(previous_response_id=first.id, input="And now?")
    assert second.previous_response_id == first.id
    whole = USER + [{"role": "assistant", "content": first.output_text}, {"role": "user", "content": "And now?"}]
    assert second.usage.input_tokens == respond(input=whole).usage.input_tokens
    client.responses.delete(first.id)
    forgotten = respond(store=False)
    for wrong, call in (
        (404, lambda: client.responses.retrieve(first.id)),
        (404, lambda: client.responses.delete(first.id)),
        (404, lambda: client.responses.retrieve(forgotten.id)),
        (400, lambda: respond(previous_response_id=first.id)),
    ):
        try:
            call()
            raise AssertionError(wrong)
        except openai.APIStatusError as error:
            assert error.status_code == wrong, error.body


def response_tools():
    tool = {"type": "function", "strict": True, **WEATHER["function"]}
    options = {"tools": [tool], "tool_choice": "required", "max_output_tokens": 200}
    answer = respond(**options, temperature=1)
    call = answer.output[-1]
    assert call.type == "function_call" and list(json.loads(call.arguments)) == ["city"], answer
    with client.responses.stream(model=MODEL, input="Weather?", **options) as stream:
        events = list(stream)
    deltas = [event.delta for event in events if event.type == "response.function_call_arguments.delta"]
    done = [event.arguments for event in events if event.type == "response.function_call_arguments.done"]
    assert len(deltas) > 1 and done == ["".join(deltas)], (deltas, done)
    final = events[-1].response
    assert final.output[-1].arguments == done[0], final
    output = {"type": "function_call_output", "call_id": final.output[-1].call_id, "output": "sunny"}
    respond(previous_response_id=final.id, input=[output], tools=[tool])
    history = [{"role": "user", "content": "Weather?"}, *[item.model_dump() for item in final.output], output]
    respond(input=history, tools=[tool])
    form = {"type": "json_schema", "name": "person", "schema": SCHEMA, "strict": True}
    answer = respond(text={"format": form}, temperature=1, max_output_tokens=300)
    jsonschema.validate(json.loads(answer.output_text), SCHEMA)
    for wrong in (
        {"tools": [{"type": "web_search"}]},
        {"input": []},
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
        {"background": True},
        {"max_output_tokens": 0},
    ):
        try:
            respond(**wrong)
            raise AssertionError(wrong)
        except openai.BadRequestError as error:
            assert error.body["message"], error.body


def refuses(status, code=None, **options):
    try:
        chat(**options)
    except openai.APIStatusError as error:
        assert error.status_code == status, (error.status_code, status, error.body)
        assert error.body["message"], error.body
        assert code is None or error.code == code, error.body
        return
    raise AssertionError(f"{options} was not refused")


def errors():
    refuses(400, temperature=3)
    refuses(400, top_p=-1)
    refuses(400, n=0)
    refuses(400, max_tokens=0)
    refuses(400, messages=[])
    refuses(400, messages=[{"role": "wizard", "content": "hi"}])
    refuses(400, messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}])
    refuses(400, top_logprobs=3)
    refuses(400, logit_bias={"1": 101})
    refuses(400, logit_bias={"-1": 1})
    refuses(400, logit_bias={"one": 1})
    refuses(400, logit_bias={str(token): 1 for token in range(1025)})
    refuses(400, "context_length_exceeded", messages=[{"role": "user", "content": "word " * 20000}])
    refuses(400, response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "elephant"}}})
    refuses(400, tools=[WEATHER], tool_choice={"type": "function", "function": {"name": "other"}})
    for wrong, call in (
        (404, lambda: client.models.retrieve("other")),
        (400, lambda: client.embeddings.create(model=MODEL, input="a")),
        (401, lambda: client.with_options(api_key="wrong").models.list()),
    ):
        try:
            call()
            raise AssertionError(wrong)
        except openai.APIStatusError as error:
            assert error.status_code == wrong, error.body


CHECKS = [models, answers, streams, completions, stops, logprobs, several, penalties, schemas, tool_calls, responses, kept_responses, response_tools, errors]
for check in CHECKS:
    check()
    print(f"ok {check.__name__}", flush=True)
print(f"{len(CHECKS)} passed")

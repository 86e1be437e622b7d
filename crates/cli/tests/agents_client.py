"""Lets an agent of OpenAI's agents library edit a file: the model is asked, calls a tool that the agent
runs, is told what came of it, and reports. Schemas leave a model no choice but the right arguments, so any
will do.

Called by clients.rs with the server's URL, the key and the model's name.
"""

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Literal

import openai
import pydantic
from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)

URL, KEY, MODEL = sys.argv[1:4]
QUESTION = "There is a spelling mistake in notes.txt. Mend it."


class Report(pydantic.BaseModel):
    file: Literal["notes.txt"]
    is_mended: bool


def agent(model_class, folder):
    @function_tool
    def replace_text(path: Literal["notes.txt"], old: Literal["teh"], new: Literal["the"]) -> str:
        """Replaces a text in a file of the project."""
        file = folder / path
        file.write_text(file.read_text().replace(old, new))
        return f"{path} is edited"

    @function_tool
    def delete_file(path: Literal["notes.txt"]) -> str:
        """Deletes a file of the project."""
        (folder / path).unlink()
        return f"{path} is deleted"

    client = openai.AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY)
    return Agent(
        name="editor",
        instructions="You edit files.",
        model=model_class(model=MODEL, openai_client=client),
        tools=[replace_text, delete_file],
        output_type=Report,
        # For the first turn; after a call the agent lets the model report.
        model_settings=ModelSettings(tool_choice="replace_text", max_tokens=200, temperature=0),
    )


async def edits(model_class, streams):
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder, "notes.txt")
        notes.write_text("Mend teh fence, then teh roof.\n")
        editor = agent(model_class, Path(folder))
        if streams:
            result = Runner.run_streamed(editor, QUESTION)
            async for _ in result.stream_events():
                pass
        else:
            result = await Runner.run(editor, QUESTION)
        assert notes.read_text() == "Mend the fence, then the roof.\n", notes.read_text()
    kinds = [item.type for item in result.new_items]
    assert kinds[:2] == ["tool_call_item", "tool_call_output_item"], kinds
    assert result.new_items[1].output == "notes.txt is edited", result.new_items[1]
    assert kinds[2:] == ["message_output_item"] and result.final_output.file == "notes.txt", kinds


async def main():
    set_tracing_disabled(True)
    for model_class in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
        for streams in (False, True):
            await edits(model_class, streams)
            print(model_class.__name__, "streams" if streams else "whole")


asyncio.run(main())
print("passed")

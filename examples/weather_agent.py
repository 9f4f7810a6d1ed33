"""An agent with one tool.

    python examples/weather_agent.py "Do I need an umbrella in Oslo tomorrow?"

With TOOLCRIB_MODEL set (say, openai:gpt-5-mini, with its key in OPENAI_API_KEY), that model answers. Without it a
scripted model does, which needs no key and no network; the agent, the tool and the path between them are real.
"""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import date, timedelta
from typing import Annotated, TypedDict

from pydantic import Field

from toolcrib import Agent, Effect, ToolError, tool
from toolcrib.events import CallFinished, RunFinished, StatusChanged, TextDelta
from toolcrib.messages import Request
from toolcrib.models import Model, Scripted, Turn, resolve_model

# Where a real weather service would be asked: degrees and millimetres of rain, day by day.
FORECASTS = {
    "oslo": [(4, 0.0), (3, 6.5), (5, 1.2)],
    "lisbon": [(19, 0.0), (21, 0.0), (20, 0.4)],
}


class Day(TypedDict):
    date: str
    celsius: int
    rain_mm: float


@tool(effect=Effect.READ, secrets=(), idempotent=True, timeout=20)
async def get_weather(city: str, days: Annotated[int, Field(ge=1, le=3)] = 1) -> list[Day]:
    """Look up the weather forecast for a city, day by day, beginning with today.

    Args:
        city: City name in English, such as "Oslo".
        days: How many days to give, today included.
    """
    forecast = FORECASTS.get(city.lower())
    if forecast is None:
        known = ", ".join(name.title() for name in FORECASTS)
        raise ToolError(f"There is no forecast for {city!r}. Cities with one: {known}.")
    return [
        {"date": str(date.today() + timedelta(days=number)), "celsius": celsius, "rain_mm": rain}
        for number, (celsius, rain) in enumerate(forecast[:days])
    ]


def scripted(request: Request) -> Turn | dict[str, object]:
    """Stands in for a model: asks for the forecast, then tells what came back."""
    said = request.messages[-1]
    if said.role == "user":
        # Models write arguments like these: the number is a string, and is repaired.
        call = {"name": "get_weather", "arguments": '{"city": "Oslo", "days": "2"}'}
        return {"text": "I look at the forecast.", "calls": [call]}
    return Turn(f"Take an umbrella tomorrow. The forecast was: {said.results[0].text}")


async def main(task: str) -> None:
    model: Model
    if os.environ.get("TOOLCRIB_MODEL"):
        model = resolve_model()
    else:
        print("(TOOLCRIB_MODEL is not set: the model is scripted and knows one answer only.)\n")
        model = Scripted(scripted)
    agent = Agent(model, [get_weather], instructions="Answer in one or two sentences.")
    async for event in agent.stream(task):
        match event:
            case TextDelta():
                print(event.text, end="", flush=True)
            case CallFinished():
                repaired = f", {event.repairs} argument repaired" if event.repairs else ""
                print(f"[{event.tool}: {event.state}{repaired}]")
            case StatusChanged(params=dict()):
                print(f"\n[{event.tool} {event.params}]")
            case RunFinished():
                print(f"\n[{event.reason}]")
            case _:
                pass


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "Do I need an umbrella in Oslo tomorrow?"))

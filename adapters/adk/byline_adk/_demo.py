"""The demo: a travel team on Google ADK with scripted models, no key and no network.

A planner has two subagents of different modes.  The weather checker is `single_turn`: it answers and is gone.  The
flight booker is a `task`: it gets typed arguments, may ask back, and returns a typed result.  It asks, so the first run
ends with the booker suspended; the user's next words continue it under the same id.
"""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from byline.events import Interrupt, RunAgentInput
from byline.hooks import Demo
from google.adk.agents import LlmAgent
from pydantic import BaseModel, Field

from .scripted import Say, ScriptedLlm

__all__ = ["FlightInput", "FlightResult", "build", "demo"]


class FlightInput(BaseModel):
    """What the flight booker needs to begin."""

    origin: str = Field(description="IATA code of the airport to leave from")
    destination: str = Field(description="IATA code of the airport to fly to")
    date: str = Field(description="the day, as YYYY-MM-DD")


class FlightResult(BaseModel):
    """What the flight booker returns."""

    flight: str
    seat: str
    price_eur: int


def demo() -> Demo:
    """Return the ADK demo."""
    return Demo(
        name="adk",
        summary="a travel planner: a single_turn weather checker, and a flight booker task that asks back",
        build=build,
        first=lambda: _say(
            f"demo-{uuid4().hex[:8]}", 1, "Plan a weekend in Lisbon in May, with a flight from Seoul."
        ),
        answer=_answer,
    )


def _answer(last: RunAgentInput, interrupts: Sequence[Interrupt]) -> RunAgentInput | None:
    """Answer the booker's question; it is no interrupt, so the next words are enough."""
    if interrupts or last.run_id != "run-1":
        return None
    return _say(last.thread_id, 2, "The morning one, at the window.")


def _say(thread: str, number: int, text: str) -> RunAgentInput:
    message = {"id": f"user-{number}", "role": "user", "content": text}
    return RunAgentInput.model_validate({"threadId": thread, "runId": f"run-{number}", "messages": [message]})


def get_weather(city: str, month: str) -> dict[str, Any]:
    """Return the usual weather of a city in a month."""
    return {"city": city, "month": month, "high": 22, "low": 14, "sky": "mostly sunny"}


def search_flights(origin: str, destination: str, date: str) -> dict[str, Any]:
    """Return the flights of a day."""
    return {
        "route": f"{origin}-{destination}",
        "date": date,
        "flights": [{"id": "KE 921", "departs": "09:40"}, {"id": "TP 1080", "departs": "21:15"}],
    }


def book_flight(flight: str, seat: str) -> dict[str, Any]:
    """Book a seat."""
    return {"confirmation": "Q7LX2M", "flight": flight, "seat": seat, "price_eur": 840}


def build(pause: float = 0.0) -> LlmAgent:
    """Return the team's root agent; its models wait `pause` seconds before each word."""
    weather_checker = LlmAgent(
        name="weather_checker",
        description="Tells what weather to expect.",
        mode="single_turn",
        tools=[get_weather],
        model=_model(
            pause,
            Say(calls=[("call_weather", "get_weather", {"city": "Lisbon", "month": "May"})], usage=(180, 14)),
            Say("Mostly sunny in May, 14 to 22 degrees: pack a light jacket.", usage=(230, 21)),
        ),
    )
    flight_booker = LlmAgent(
        name="flight_booker",
        description="Finds and books a flight.",
        mode="task",
        input_schema=FlightInput,
        output_schema=FlightResult,
        tools=[search_flights, book_flight],
        model=_model(
            pause,
            Say(
                calls=[
                    (
                        "call_search",
                        "search_flights",
                        {"origin": "ICN", "destination": "LIS", "date": "2027-05-14"},
                    )
                ],
                usage=(260, 30),
            ),
            Say(
                "There is one in the morning and one in the evening. Which one, and where do you like to sit?",
                usage=(340, 24),
            ),
            Say(
                calls=[("call_book", "book_flight", {"flight": "KE 921", "seat": "32A"})],
                usage=(390, 18),
            ),
            Say(
                calls=[
                    (
                        "call_finish",
                        "finish_task",
                        {"flight": "KE 921", "seat": "32A", "price_eur": 840},
                    )
                ],
                usage=(430, 25),
            ),
        ),
    )
    return LlmAgent(
        name="travel_planner",
        description="Plans a trip.",
        sub_agents=[weather_checker, flight_booker],
        model=_model(
            pause,
            Say(
                "First the weather.",
                calls=[("call_checker", "weather_checker", {"request": "Lisbon in May"})],
                usage=(300, 26),
            ),
            Say(
                "Now the flight.",
                calls=[
                    (
                        "call_booker",
                        "flight_booker",
                        {"origin": "ICN", "destination": "LIS", "date": "2027-05-14"},
                    )
                ],
                usage=(370, 35),
            ),
            Say("All set: sunny days in Lisbon, and seat 32A on KE 921 in the morning.", usage=(450, 24)),
        ),
    )


def _model(pause: float, *turns: Say) -> ScriptedLlm:
    paced = [Say(turn.text, turn.calls, usage=turn.usage, pause=pause) for turn in turns]
    return ScriptedLlm(script=paced, requests=[])

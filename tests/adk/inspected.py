"""Teams to look at."""

from byline_adk._observer import observe
from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.apps import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import AgentTool, FunctionTool
from google.adk.workflow import START, Workflow

FLASH, PRO = "gemini-2.5-flash", "gemini-2.5-pro"


def pay(amount: str) -> str:
    """Pay."""
    return amount


def prepare(node_input: str) -> str:
    return node_input


def look(callback_context, llm_request):
    return None


def team():
    return LlmAgent(
        name="root",
        description="runs the shop",
        model=FLASH,
        instruction="You run the shop.",
        before_model_callback=look,
        tools=[FunctionTool(pay, require_confirmation=True), AgentTool(LlmAgent(name="expert", model=PRO))],
        sub_agents=[
            LlmAgent(name="weather", model=PRO, mode="single_turn", instruction="Look at {city}."),
            LlmAgent(name="booker", mode="task", instruction=lambda context: "Book."),
            LlmAgent(name="desk"),
            SequentialAgent(name="line", sub_agents=[LlmAgent(name="first")]),
        ],
    )


def flow():
    return Workflow(name="flow", edges=[(START, prepare, LlmAgent(name="writer", model=PRO))])


def app():
    return App(name="shop", root_agent=LlmAgent(name="root", model=FLASH), plugins=[BasePlugin("audit")])


def runner():
    made = Runner(app=app(), session_service=InMemorySessionService())
    observe(made)
    return made


def task_under_sequential():
    return SequentialAgent(name="seq", sub_agents=[LlmAgent(name="clerk", model=FLASH, mode="task")])


def single_turn_under_sequential():
    helper = LlmAgent(name="helper", mode="single_turn")
    return SequentialAgent(name="seq", sub_agents=[LlmAgent(name="boss", model=FLASH, sub_agents=[helper])])


def task_after_transfer():
    desk = LlmAgent(name="desk", sub_agents=[LlmAgent(name="clerk", mode="task")])
    return LlmAgent(name="root", model=FLASH, sub_agents=[desk])

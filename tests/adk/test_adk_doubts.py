"""Combinations that ADK accepts and then drops: said when the team is taken in hand, with the name and the cure."""

import pytest
from adk_kit import agent, attribute, can, runner
from google.adk.agents import LoopAgent, SequentialAgent


def single(name, **options):
    return agent(name, mode="single_turn", **options)


def task(name, **options):
    return agent(name, mode="task", **options)


FINE = [
    lambda: agent("root", sub_agents=[single("a"), task("b"), agent("c", sub_agents=[single("d")])]),
    lambda: SequentialAgent(name="seq", sub_agents=[agent("a"), agent("b")]),
    lambda: agent(
        "root", sub_agents=[SequentialAgent(name="seq", sub_agents=[agent("a", sub_agents=[single("b")])])]
    ),
]

DOUBTFUL = [
    (
        lambda: SequentialAgent(name="seq", sub_agents=[agent("boss", sub_agents=[single("helper")])]),
        (
            "agent 'boss' delegates to 'helper' (mode='single_turn') inside SequentialAgent 'seq', where ADK has no "
            "scheduler for it: the call always fails; use a Workflow in its place, or an LlmAgent as the root"
        ),
    ),
    (
        lambda: agent(
            "root",
            sub_agents=[LoopAgent(name="loop", sub_agents=[agent("boss", sub_agents=[task("clerk")])])],
        ),
        (
            "agent 'boss' delegates to 'clerk' (mode='task') inside LoopAgent 'loop', where ADK has no scheduler for it: "
            "the call is never answered; use a Workflow in its place, or an LlmAgent as the root"
        ),
    ),
    (
        lambda: SequentialAgent(name="seq", sub_agents=[task("clerk")]),
        (
            "agent 'clerk' has mode='task' under SequentialAgent 'seq', which runs it as if it had none; make it a node of a "
            "Workflow, or leave mode out"
        ),
    ),
    (
        lambda: agent("root", sub_agents=[agent("desk", sub_agents=[task("clerk")])]),
        (
            "agent 'desk' is reached by transfer and delegates the task 'clerk': ADK fails when the call is made; give the "
            "task to the root, or make the caller a task as well"
        ),
    ),
]


def said(caplog, root):
    attribute(runner(root))
    return [record.getMessage() for record in caplog.records if record.name == "byline"]


@pytest.mark.parametrize("team", FINE)
def test_what_works_is_not_doubted(team, caplog):
    assert said(caplog, team()) == []


@pytest.mark.parametrize(("team", "doubt"), DOUBTFUL)
def test_what_is_dropped_is_said(team, doubt, caplog):
    assert said(caplog, team()) == [doubt]


def test_a_task_below_a_task(caplog):
    found = said(caplog, agent("root", sub_agents=[task("upper", sub_agents=[task("lower")])]))
    doubt = (
        "agent 'upper' is a task and delegates the task 'lower', which google-adk before 2.12 never answers; upgrade, "
        "or let the root delegate both"
    )
    assert found == ([] if can("nested_task") else [doubt])

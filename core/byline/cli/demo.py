"""`byline demo`: a real team with scripted models, run live, so that you can see who does what."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text
from rich.tree import Tree

from byline import attribute
from byline.events import BaseEvent, RunAgentInput, RunFinishedInterruptOutcome, encode
from byline.hooks import Demo, Plugins
from byline.ledger import Branch, Ledger, Work

__all__ = ["demo", "screen"]

_SIGNS: Final = {
    "running": ("…", "yellow"),
    "finished": ("✓", "green"),
    "suspended": ("⏸", "cyan"),
    "interrupted": ("⏸", "cyan"),
    "failed": ("✗", "red"),
    "cancelled": ("⊘", "magenta"),
    "abandoned": ("?", "magenta"),
}
_REFRESH: Final = 12
"""Pictures per second."""
_WIDTH: Final = 100
"""How much of the newest text is shown, in characters."""


@click.command()
@click.argument("name", required=False)
@click.option(
    "-o",
    "--output",
    default="byline-demo.jsonl",
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the stream goes, one event a line.",
)
@click.option("--pause", default=0.06, show_default=True, help="Seconds before each word of a model.")
def demo(name: str | None, output: Path, pause: float) -> None:
    """Run a team of agents with scripted models: no key, no network.

    NAME is one of the demos that the installed adapters bring; without it, the first one runs.
    """
    chosen = _choose(name)
    try:
        file = output.open("w", encoding="utf-8", newline="\n")
    except OSError as fault:
        raise click.ClickException(
            f"cannot write {output}: {fault.strerror}; choose another file with -o"
        ) from fault
    console = Console()
    console.print(Text(f"{chosen.name}: {chosen.summary}", style="bold"))
    with file:
        asyncio.run(_play(chosen, file, console, pause))
    console.print()
    console.print(f"The stream is in [bold]{output}[/bold]. Try:", highlight=False)
    for command in (f"byline check {output}", f"byline tree {output}"):
        console.print(f"  {command}", highlight=False, markup=False)


def _choose(name: str | None) -> Demo:
    plugins = Plugins()
    demos: dict[str, Demo] = {one.name: one for one in plugins.collect("byline_demos")}
    if not demos:
        broken = "".join(f"\n{plugin}: {why}" for plugin, why in plugins.broken.items())
        raise click.ClickException(
            f"no installed adapter brings a demo; install one: pip install 'byline[langgraph]'{broken}"
        )
    if name is None:
        return demos.get("langgraph") or next(iter(demos.values()))
    if name not in demos:
        raise click.ClickException(f"there is no demo {name!r}; there are {', '.join(sorted(demos))}")
    return demos[name]


async def _play(demo: Demo, file: IO[str], console: Console, pause: float) -> None:
    ledger = Ledger()
    agent = attribute(demo.build(pause))
    run_input: RunAgentInput | None = demo.first()
    with screen(console, ledger) as show:
        while run_input is not None:
            last: BaseEvent | None = None
            async for event in agent.run(run_input):
                file.write(encode(event) + "\n")
                ledger.feed(event)
                show()
                last = event
            outcome = getattr(last, "outcome", None)
            asked = outcome.interrupts if isinstance(outcome, RunFinishedInterruptOutcome) else []
            # The next input carries the conversation as a client has it: the ids in it keep their meaning.
            known = RunAgentInput.model_validate(
                {**run_input.model_dump(by_alias=True), "messages": ledger.messages}
            )
            asked_by_user = [message for message in run_input.messages if message.role == "user"]
            known.messages[:0] = asked_by_user
            run_input = demo.answer(known, asked)
    ledger.finish()


@contextmanager
def screen(console: Console, ledger: Ledger) -> Iterator[Callable[[], None]]:
    """Draw the team as it works on a terminal; elsewhere, once at the end."""
    if not console.is_terminal:
        yield lambda: None
        if ledger.runs:
            console.print(_picture(ledger))
        return
    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:
        drawn = 0.0

        def show() -> None:
            nonlocal drawn
            if time.monotonic() - drawn > 1 / _REFRESH:
                drawn = time.monotonic()
                live.update(_picture(ledger), refresh=True)

        yield show
        if ledger.runs:
            live.update(_picture(ledger), refresh=True)


def _picture(ledger: Ledger) -> RenderableType:
    runs = ledger.runs
    status = runs[-1].status if runs else "running"
    tree = Tree(_line("parent agent", status, ledger.work(None) if runs else Work()))
    nodes = [tree]
    for branch in ledger.tree():
        del nodes[branch.depth + 1 :]
        nodes.append(nodes[-1].add(_branch(branch)))
    questions = [
        Text(f"asks: {interrupt.get('message') or interrupt['reason']}", style="cyan")
        for asked in ledger.pending_interrupts.values()
        for interrupt in asked
    ]
    return Group(tree, *questions) if status == "interrupted" else tree


def _branch(branch: Branch) -> Text:
    invocation = branch.invocation
    line = _line(invocation.name or invocation.id, invocation.status or "running", branch.work)
    if invocation.failure is not None:
        line.append(f"  {invocation.failure.message}", style="red")
    return line


def _line(name: str, status: str, work: Work) -> Text:
    sign, colour = _SIGNS.get(status, ("•", "white"))
    line = Text.assemble((f"{sign} ", colour), (_clean(name), "bold"), (f"  {status}", colour))
    said = work.texts or work.reasoning
    if said:
        line.append(f"  {_tail(_clean(said[-1].text))}", style="dim" if status == "finished" else "")
    return line


def _tail(text: str) -> str:
    """Return the end of a text, cut between words."""
    return text if len(text) <= _WIDTH else "… " + text[-_WIDTH:].partition(" ")[2]


def _clean(text: str) -> str:
    """Return text on one line, without the characters that would move a terminal's cursor."""
    return "".join(char if char.isprintable() else " " for char in text)

"""`byline view`: a recording as one page that anybody can open, or a running endpoint in the terminal."""

import tempfile
import webbrowser
from pathlib import Path

import click

from byline.reading import ReadError, records, source
from byline.render import page
from byline.rules import PROFILES, Profile

__all__ = ["view"]


@click.command()
@click.argument("file", required=False, metavar="FILE | -")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    help="Where the page goes; - for standard output.  Without it: FILE with the ending .html, in this folder.",
)
@click.option("--open", "open_", is_flag=True, help="Open the page in a browser.")
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    default="producer",
    show_default=True,
    help="The profile of the validator, whose findings stand beside the events.",
)
@click.option(
    "--live", metavar="URL", help="Run the agent at this AG-UI endpoint and follow it in the terminal."
)
@click.option(
    "--input",
    "input_",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="With --live: the RunAgentInput to post, a JSON file.",
)
def view(
    *,
    file: str | None,
    output: Path | None,
    open_: bool,
    profile: Profile,
    live: str | None,
    input_: Path | None,
) -> None:
    """See who did what: a lane per invocation, over time, in one self-contained HTML page.

    FILE is a recording: JSON lines, a JSON array or a capture of server-sent events, plain or gzip.
    """
    if live is not None:
        from byline.cli._live import follow

        if file is not None or output is not None or open_:
            raise click.UsageError(
                "--live follows an endpoint in the terminal; FILE, -o and --open are for pages"
            )
        follow(live, input_)
        return
    if file is None:
        raise click.UsageError("give the recording to show, - for standard input, or --live URL")
    text = _page(file, profile)
    if str(output) == "-":
        click.echo(text.encode(), nl=False)
        return
    target = output or (_temporary(file) if open_ else Path(_stem(file) + ".html"))
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as fault:
        raise click.ClickException(
            f"cannot write {target}: {fault.strerror or fault}; choose another file with -o"
        ) from fault
    click.echo(f"{target}")
    if open_ and not webbrowser.open(target.resolve().as_uri()):
        raise click.ClickException(f"no browser could be started; open {target.resolve()} yourself")


def _page(file: str, profile: Profile) -> str:
    name = "standard input" if file == "-" else Path(file).name
    try:
        with source(file) as chunks:
            return page(records(chunks), title=f"byline: {name}", profile=profile)
    except ReadError as fault:
        raise click.ClickException(str(fault)) from fault


def _stem(file: str) -> str:
    name = "run" if file == "-" else Path(file).name
    for ending in (".gz", ".jsonl", ".json", ".sse", ".txt", ".ndjson"):
        name = name.removesuffix(ending)
    return name or "run"


def _temporary(file: str) -> Path:
    return Path(tempfile.mkdtemp(prefix="byline-")) / f"{_stem(file)}.html"

"""`byline view --live URL`: run the agent behind an endpoint and draw its team while it works."""

import json
from pathlib import Path
from uuid import uuid4

import click
from pydantic import ValidationError
from rich.console import Console

from byline.cli.demo import screen
from byline.events import RunAgentInput
from byline.ledger import Ledger
from byline.reading import ReadError, records, source

__all__ = ["follow"]


def follow(url: str, given: Path | None) -> None:
    """Post a `RunAgentInput` to `url` and draw what comes; exit 1 when the run fails or its stream breaks off."""
    if not url.startswith(("http://", "https://")):
        raise click.UsageError(f"--live {url!r} is no address: it begins with http:// or https://")
    ledger = Ledger()
    broken: ReadError | None = None
    with screen(Console(), ledger) as show:
        try:
            with source(url, body=_body(given)) as chunks:
                for record in records(chunks):
                    ledger.feed(record.data or b"")
                    show()
        except ReadError as fault:
            broken = fault
        ledger.finish()
    if broken is not None:
        raise click.ClickException(str(broken))
    for refusal in ledger.refusals:
        click.echo(f"event {refusal.event}: {refusal.rule}: {refusal.message}", err=True)
    if not ledger.runs or ledger.runs[-1].status in ("failed", "abandoned"):
        failure = ledger.runs[-1].failure if ledger.runs else None
        said = "the stream ended before the run did" if failure is None else failure.message
        raise click.ClickException(said if ledger.runs else "the endpoint sent no run")


def _body(given: Path | None) -> bytes:
    if given is None:
        wire = {
            "threadId": str(uuid4()),
            "runId": str(uuid4()),
            "messages": [],
            "tools": [],
            "context": [],
            "state": {},
            "forwardedProps": {},
        }
        return json.dumps(wire).encode()
    try:
        return RunAgentInput.model_validate_json(given.read_bytes()).model_dump_json(by_alias=True).encode()
    except ValidationError as fault:
        first = fault.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise click.UsageError(f"{given} is no RunAgentInput: {place}: {first['msg']}") from fault
    except OSError as fault:
        raise click.UsageError(f"cannot read {given}: {fault.strerror or fault}") from fault

"""`byline grant inspect`: what a token covers, and why it would be refused."""

import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import click

from byline.errors import InputError
from byline.grants import Attempt, BadSignatureError, Grant, Grants, Key, KeyRing, Resource, peek

__all__ = ["grant"]

_PEM = b"-----BEGIN"


@click.group()
def grant() -> None:
    """Say what a grant covers and why it would be refused."""


@grant.command()
@click.argument("token")
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="KID=FILE",
    help="A key to check it with: a secret, or a PEM file.",
)
@click.option("--user", help="Who is about to run.")
@click.option("--run", "run_id", help="The id of that run.")
@click.option("--parent", help="The parent agent's id.")
@click.option("--thread", help="The thread of the run.")
@click.option("--mode", default="default", show_default=True, help="The run mode.")
@click.option(
    "--use",
    "used",
    multiple=True,
    metavar="KIND=NAME",
    help="Something that the run uses, as in tool=search.",
)
def inspect(
    token: str,
    keys: tuple[str, ...],
    user: str | None,
    run_id: str | None,
    parent: str | None,
    thread: str | None,
    mode: str,
    used: tuple[str, ...],
) -> None:
    """Say what TOKEN covers and which check it would fail; nothing is spent.

    TOKEN is the token, or - to read it from the standard input, where no shell remembers it.  Without --key the
    signature is not checked, and nothing of what it says can be relied on.  What is given of the run (--user, --run,
    --parent, --thread, --mode, --use) is held against it; what is not given is taken from the token.

    Ends with 0 if a run could start with it, with 1 if it would be refused.
    """
    text = sys.stdin.read(1_000_000).strip() if token == "-" else token  # noqa: S105 - a dash, no secret
    try:
        claimed = peek(text)
    except BadSignatureError as fault:
        click.echo(str(fault))
        raise SystemExit(1) from None
    for line in _told(claimed):
        click.echo(line)
    attempt = Attempt(
        claimed.user if user is None else user,
        claimed.run_id if run_id is None else run_id,
        claimed.parent_agent_id if parent is None else parent,
        claimed.thread_id if thread is None else thread,
        mode
        if click.get_current_context().get_parameter_source("mode") == click.core.ParameterSource.COMMANDLINE
        else claimed.mode,
        frozenset(_resource(one) for one in used),
    )
    raise SystemExit(_judged(text, keys, attempt))


def _told(claimed: Grant) -> list[str]:
    rows = [
        ("grant", claimed.id),
        ("user", claimed.user),
        ("run", claimed.run_id),
        ("parent agent", claimed.parent_agent_id),
        ("thread", claimed.thread_id),
        ("mode", claimed.mode),
        ("issued", _when(claimed.issued_at)),
        ("expires", _when(claimed.expires_at)),
    ]
    rows += [(kind, name) for kind, name in sorted(claimed.resources)]
    return [f"{what:<14}{_plain(value)}" for what, value in rows]


def _judged(token: str, keys: tuple[str, ...], attempt: Attempt) -> int:
    """Tell each check on a line of its own; return the exit code."""
    if not keys:
        click.echo(
            "signature     not checked: give the key with --key KID=FILE; what stands above may be forged"
        )
        return 1
    service = Grants(KeyRing(*(_key(one) for one in keys)))
    refused = False
    for what, fault in service.explain(token, attempt):
        refused = refused or fault is not None
        click.echo(f"{what:<14}{'ok' if fault is None else _plain(str(fault))}")
    click.echo("spent         not asked: whether it was used before is known to the ledger of the runtime")
    return int(refused)


def _key(option: str) -> Key:
    kid, equals, name = option.partition("=")
    try:
        raw = Path(name).read_bytes() if equals else b""
    except OSError as fault:
        raise click.BadParameter(f"cannot read {name}: {fault.strerror}", param_hint="--key") from fault
    try:
        if raw.startswith(_PEM):
            return Key(kid, raw, "EdDSA")
        return Key(kid, raw)
    except InputError as fault:
        raise click.BadParameter(f"{fault} (expected KID=FILE)", param_hint="--key") from fault


def _resource(option: str) -> Resource:
    kind, equals, name = option.partition("=")
    if not equals or kind not in ("model", "tool", "middleware", "skill", "subagent"):
        raise click.BadParameter(f"{option!r} is no KIND=NAME, as in tool=search", param_hint="--use")
    return Resource(kind, name)  # type: ignore[arg-type]  # just checked


def _when(seconds: int) -> str:
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return str(seconds)
    left = seconds - time.time()
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC ({abs(left):.0f} s {'from now' if left > 0 else 'ago'})"


def _plain(text: str) -> str:
    # Whoever made the token may want to write on the terminal of whoever reads it.
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)

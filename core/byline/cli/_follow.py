"""`byline tree --follow`: a file that is still being written, drawn as it grows."""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Self

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from byline.ledger import Ledger
from byline.reading import ReadError, records

__all__ = ["follow"]

_LOOK: Final = 0.25
"""Seconds between two looks at a file that did not grow."""
_GZIP: Final = b"\x1f\x8b"

Shown = Callable[[Ledger, Sequence[int]], Iterator[str]]


def follow(file: str, shown: Shown) -> None:
    """Draw the ledger of `file` as it grows, until Ctrl+C.

    On a terminal the picture is renewed in place; elsewhere it is printed whenever a run has ended, and at the end.
    Raises `ReadError` for a file that cannot be opened or followed.
    """
    ledger, lines = Ledger(), [0]
    lines.clear()
    console = Console()
    screen = _Screen(console, lambda: "\n".join(shown(ledger, lines)))
    with screen:
        try:
            for record in records(_growing(Path(file), screen.catch_up)):
                lines.append(record.line)
                ledger.feed(record.data or b"")
                run = ledger.runs[-1] if ledger.runs else None
                screen.changed(
                    run_over=run is not None and run.end is not None and run.end.event == len(lines) - 1
                )
        except KeyboardInterrupt:
            ledger.finish()


def _growing(path: Path, waiting: Callable[[], None]) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while True:
                at = file.tell()
                if chunk := file.read(1 << 16):
                    if at == 0 and chunk.startswith(_GZIP):
                        raise ReadError(f"{path} is compressed: it cannot be followed while it is written")
                    yield chunk
                    continue
                waiting()
                if path.stat().st_size < at:
                    raise ReadError(f"{path} became shorter: it was begun anew; start again")
                time.sleep(_LOOK)
    except OSError as error:
        raise ReadError(f"cannot read {path}: {error.strerror or error}") from error


class _Screen:
    """Draws when there is something new, and not more often than the eye can see."""

    def __init__(self, console: Console, draw: Callable[[], str]) -> None:
        self._draw: Final = draw
        self._live: Final = (
            Live(console=console, auto_refresh=False, vertical_overflow="visible")
            if console.is_terminal
            else None
        )
        self._stale = True
        self._drawn = 0.0

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stale = True
        self.catch_up()
        if self._live is not None:
            self._live.stop()
        else:
            click.echo(self._draw())

    def changed(self, *, run_over: bool) -> None:
        """There is something new."""
        self._stale = True
        if self._live is None:
            if run_over:
                click.echo(self._draw())
        elif time.monotonic() - self._drawn > _LOOK:
            self.catch_up()

    def catch_up(self) -> None:
        """Draw what is new."""
        if self._stale and self._live is not None:
            self._stale, self._drawn = False, time.monotonic()
            self._live.update(Text.from_ansi(self._draw()), refresh=True)

"""The official JavaScript client as a judge: its final messages, with their tags, must be the ledger's."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from .judging import Cell
from .telling import Wire

__all__ = ["CLIENT", "REPLAY", "ask_the_client", "home", "why_not"]

CLIENT: Final = "@ag-ui/client@1.0.0"
REPLAY: Final = Path(__file__).parent / "replay.mjs"
"""The script that has the client read recorded streams."""


def home() -> Path:
    """Return where the client is looked for: `BYLINE_AGUI_CLIENT`, else the user's cache directory."""
    if given := os.environ.get("BYLINE_AGUI_CLIENT"):
        return Path(given)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "byline-judges" / CLIENT.replace("/", "-")


def why_not(directory: Path) -> str | None:
    """Return why the client in `directory` cannot be asked, or `None`."""
    if shutil.which("node") is None:
        return "the JavaScript client needs node, which is not on the PATH"
    if not (directory / "node_modules" / "@ag-ui" / "client").is_dir():
        return f"no JavaScript client in {directory}: npm install --prefix {directory} {CLIENT}"
    return None


def ask_the_client(cells: Sequence[Cell], directory: Path, seconds: float = 120.0) -> dict[str, list[str]]:
    """Replay the streams of `cells` through the client; return, by scenario, where it disagrees with the ledger.

    `directory` holds `node_modules`.  Raises `subprocess.SubprocessError` when node fails.
    """
    with tempfile.TemporaryDirectory() as place:
        files: dict[str, Cell] = {}
        for number, cell in enumerate(cell for cell in cells if cell.messages is not None):
            file = Path(place, f"{number}.jsonl")
            file.write_text("".join(json.dumps(event) + "\n" for event in cell.stream), encoding="utf-8")
            files[str(file)] = cell
        command = [str(shutil.which("node")), str(REPLAY), str(directory.resolve())]
        done = subprocess.run(  # noqa: S603 - our own script
            command, input="\n".join(files), capture_output=True, text=True, timeout=seconds, check=True
        )
    readings = [json.loads(line) for line in done.stdout.splitlines()]
    found = {
        cell.scenario: difference
        for reading in readings
        for cell in [files[reading["file"]]]
        if (difference := _difference(cell, reading))
    }
    missing = set(files) - {reading["file"] for reading in readings}
    return found | {files[file].scenario: ["the client gave no reading"] for file in missing}


def _difference(cell: Cell, reading: Mapping[str, Any]) -> list[str]:
    failed = any(event.get("type") == "RUN_ERROR" for event in cell.stream)
    lines = []
    if reading["error"] is not None and not failed:
        lines.append(f"the client refused the stream: {reading['error']}")
    seen = [_plain(message) for message in reading["messages"]]
    ours = [_plain(message) for message in cell.messages or ()]
    if seen != ours:
        lines += [f"the ledger has {one}" for one in ours if one not in seen]
        lines += [f"the client has {one}" for one in seen if one not in ours]
        if len(lines) == (reading["error"] is not None and not failed):
            lines.append("the same messages stand in another order")
    return lines


def _plain(message: Wire) -> dict[str, Any]:
    return {key: value for key, value in message.items() if value is not None}

"""What is run over this project.  `nox` alone runs what has to pass before anything lands."""

import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.sessions = ["lint", "types", "contracts", "tests"]
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = False

PARTS = Path(".nox", "matrix")
PYPROJECT = nox.project.load_toml("pyproject.toml")
TESTS = ("test", "langgraph-test", "adk-test", "permit-test", "serve-test")

OLDEST = {
    "langgraph": [
        "langgraph==1.1.6",
        "langchain==1.2.15",
        "langchain-core==1.2.28",
        "langgraph-supervisor",
        "langgraph-swarm",
        "langgraph-checkpoint-sqlite",
    ],
    "deepagents": ["deepagents==0.7.12", "langgraph-checkpoint-sqlite"],
    "adk": ["google-adk==2.6.*"],
}
"""The oldest supported releases, each adapter as a set of its own: the newest of one do not go with the oldest of another."""


def groups(*names: str) -> list[str]:
    return nox.project.dependency_groups(PYPROJECT, *names)


@nox.session
def lint(session: nox.Session) -> None:
    """Style, and what ruff takes for mistakes."""
    session.install(*groups("lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Strict types over all packages."""
    session.install("-e", ".[all]", *groups("lint", *TESTS))
    session.run("mypy")


@nox.session
def contracts(session: nox.Session) -> None:
    """The direction of the imports: the core knows no framework, the law no edge."""
    session.install("-e", ".[all]", *groups("lint"))
    session.run("lint-imports")


@nox.session
def tests(session: nox.Session) -> None:
    """All tests, on the newest frameworks."""
    session.install("-e", ".[all]", *groups(*TESTS))
    session.run("pytest", *session.posargs)


@nox.session
@nox.parametrize("adapter", list(OLDEST))
def oldest(session: nox.Session, adapter: str) -> None:
    """An adapter's tests on the oldest releases that it supports."""
    more = ["adk-test"] if adapter == "adk" else []
    session.install("-e", f".[{adapter}]", *OLDEST[adapter], *groups("test", *more))
    session.run("pytest", f"tests/{adapter}", *session.posargs)


@nox.session
def judges(session: nox.Session) -> None:
    """The official JavaScript client, on recorded streams and on a live run over HTTP; and a CopilotKit front end."""
    session.install("-e", ".[all]", *groups(*TESTS))
    client = str(
        Path(session.create_tmp()).resolve()
    )  # nox gives a path from here, node wants one from the root
    session.run("npm", "install", "--silent", "--prefix", client, "@ag-ui/client@1.0.0", external=True)
    front = Path(client, "copilotkit")
    shutil.copytree("examples/copilotkit", front, dirs_exist_ok=True)
    with session.chdir(front):
        session.run("npm", "install", "--silent", external=True)
    session.run(
        "pytest",
        "tests/judges",
        "tests/conformance/test_matrix.py",
        *session.posargs,
        env={"BYLINE_AGUI_CLIENT": client, "BYLINE_COPILOTKIT": str(front)},
    )


SUPERVISORS = ["langgraph-supervisor>=0.0.31", "langgraph-swarm>=0.1"]
FRAMEWORKS = {
    "langgraph-oldest": ["langgraph==1.1.6", "langchain==1.2.15", *SUPERVISORS],
    "deepagents-oldest": ["deepagents==0.7.12"],
    "adk-oldest": ["google-adk==2.6.3"],
    "langgraph-newest": ["langgraph", "langchain", "deepagents", *SUPERVISORS, "ag-ui-langgraph", "fastapi"],
    "adk-newest": ["google-adk", "ag-ui-adk", "fastapi"],
}


@nox.session
def matrix(session: nox.Session) -> None:
    """All scenarios on all hosts, oldest and newest versions, all Pythons; writes docs/conformance.md and comparison.md.

    A Python that is not on the path is left out.  pyenv puts all of its own there with `PYENV_VERSION=3.11:3.12:3.13`.
    """
    shutil.rmtree(PARTS, ignore_errors=True)
    for python in ("3.11", "3.12", "3.13"):
        for frameworks in FRAMEWORKS:
            session.notify(f"play-{python}(frameworks='{frameworks}')")
    session.notify("conformance")


@nox.session(python=["3.11", "3.12", "3.13"], download_python="never")
@nox.parametrize("frameworks", list(FRAMEWORKS))
def play(session: nox.Session, frameworks: str) -> None:
    """One environment of the matrix."""
    session.install("-e", ".", *FRAMEWORKS[frameworks], "ag-ui-validate")
    PARTS.mkdir(parents=True, exist_ok=True)
    part = PARTS / f"{frameworks}-{session.python}.json"
    official = ["official"] if frameworks.endswith("newest") and session.python == "3.11" else []
    session.run("python", "tests/conformance/conform_matrix.py", "play", str(part), *official)


@nox.session
def conformance(session: nox.Session) -> None:
    """The pages of the matrix, made of what was played."""
    session.install("-e", ".")
    parts = [str(part) for part in sorted(PARTS.glob("*.json"))]
    session.run("python", "tests/conformance/conform_matrix.py", "render", "docs", *parts)


@nox.session
def fuzz(session: nox.Session) -> None:
    """The property tests, long."""
    session.install("-e", ".[langgraph]", *groups("test"))
    session.run(
        "pytest", "tests/law", "tests/ledger", "--hypothesis-profile=fuzz", "--timeout=3600", *session.posargs
    )


@nox.session
def mutate(session: nox.Session) -> None:
    """Whether the tests notice when attribution or judgement is wrong: `-- attributor` for one target, see the script."""
    session.install("-e", ".[all]", *groups(*TESTS, "mutate"))
    session.run("python", "tests/mutation/mutate.py", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """The figures: ratios measured in one process, never asserted."""
    session.install("-e", ".[all]", *groups("bench", "langgraph-test"))
    for script in session.posargs or [
        f"benchmarks/{name}.py" for name in ("langgraph", "adk", "record", "validator", "ledger")
    ]:
        session.run("python", script)

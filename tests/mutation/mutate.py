"""Do the tests notice when the code is wrong?  mutmut makes it wrong, one small change at a time, and runs them.

    python tests/mutation/mutate.py                           all targets
    python tests/mutation/mutate.py attributor                one
    python tests/mutation/mutate.py attributor --again        only what survived the last time, with the tests of now
    python tests/mutation/mutate.py attributor '*_call_of*'   only the functions of that name, after a run of all

A target is a file beside this one: the modules that are mutated, the tests that should notice, and each mutant that
survives them, with the reason why that may be.  A mutant is named by its function and by what it makes of which line,
not by mutmut's running number, which the next edit would move.  Where one function has the same line twice, `nth`
says which.  A run fails when a mutant survives that is not listed, and when fewer than nine in ten of a module's die;
what is listed and dies now, or is no more, is said.

mutmut takes a module's path for its name, which with four source roots it is not.  So each target gets a directory of
its own in `.nox/mutants`, in which the packages of all roots stand side by side.  In the process of the tests the
copies in its `mutants/` come before the installed packages; a process that a test starts sees what is installed, and
kills nothing.  `mutmut browse` and `mutmut show NAME` work in that directory.

A mutant counts as dead when its tests do not pass, for whatever reason.  That they pass when nothing is wrong, in the
forked process and in the order in which mutmut runs them, is what the canary is for: a mutant that changes nothing,
under all tests of the target, which has to survive.

Property tests are left out: what a random example finds today it may miss tomorrow.  What runs while a module is
imported is not mutated either: that is over when mutmut forks.  What is decorated is: see `decorated.py`.
"""

import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code
from mutmut.utils.format_utils import orig_function_and_class_names_from_key

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]
WORK = PROJECT / ".nox" / "mutants"
PACKAGES = (
    "core/byline",
    "adapters/langgraph/byline_langgraph",
    "adapters/deepagents/byline_deepagents",
    "adapters/adk/byline_adk",
)
BESIDE = ("tests", "docs", "benchmarks", "README.md", "CHANGELOG.md", "LICENSE", "noxfile.py")
FLOOR = 0.9
KILLED = {"killed", "timeout", "segfault", "suspicious"}  # the tests did not pass, however they failed

CANARY = """
import pytest

@pytest.fixture(autouse=True)
def _canary():
    sing()

def sing():
    _ = None
"""


@dataclass(frozen=True)
class Mutant:
    """What tells one mutant from all others, whatever else is edited."""

    function: str
    was: str
    becomes: str
    nth: int = 1

    def toml(self) -> str:
        """Return the entry that would list it."""
        nth = f"nth = {self.nth}\n" if self.nth > 1 else ""
        return (
            f"[[survivor]]\nfunction = {_quoted(self.function)}\nwas = {_quoted(self.was)}\n"
            f'becomes = {_quoted(self.becomes)}\n{nth}why = ""\n'
        )


def _quoted(text: str) -> str:
    if "\n" not in text and "'" not in text:
        return f"'{text}'"
    quotes = '"""' if "'''" in text else "'''"
    return f"{quotes}\n{text}{quotes}"


def main(arguments: list[str]) -> int:
    """Run the targets named, or all; return 0 when all hold."""
    again = "--again" in arguments
    known = sorted(path.stem for path in HERE.glob("*.toml"))
    rest = [argument for argument in arguments if argument != "--again"]
    targets = [argument for argument in rest if argument in known]
    functions = [argument for argument in rest if "*" in argument]
    if unknown := [argument for argument in rest if argument not in targets + functions]:
        print(f"{unknown[0]!r} is no target: {', '.join(known)}")
        return 2
    held = [run(target, functions, again=again) for target in targets or known]
    return 0 if all(held) else 1


def run(target: str, functions: list[str], *, again: bool) -> bool:
    """Mutate one target, print what became of its mutants, and return whether that is as it should be."""
    work = WORK / target
    plan = tomllib.loads((HERE / f"{target}.toml").read_text("utf-8"))
    if not (again or functions):
        shutil.rmtree(work, ignore_errors=True)
    lay_out(work, plan)
    os.chdir(work)
    if again:
        forget_survivors(plan["modules"])
    started = time.monotonic()
    log = work / "mutmut.log"
    with log.open("w") as out:
        mutmut = subprocess.run(
            [sys.executable, HERE / "decorated.py", "run", *functions],
            env={**os.environ, "PYTHONHASHSEED": "0"},
            stdout=None if sys.stdout.isatty() else out,  # it draws how far it has come
            stderr=subprocess.STDOUT,
            check=False,
        )
    if mutmut.returncode:
        print("\n".join(log.read_text("utf-8").rsplit("\r", 1)[-1].splitlines()[-40:]))
        print(f"{target}: mutmut gave up, see above")
        return False
    if set(fates_of(Path("canary.py")).values()) - (
        {"survived", "not checked"} if functions else {"survived"}
    ):
        print(
            f"{target}: the tests fail where nothing is wrong: run {' '.join(plan['tests'])} in {work / 'mutants'}"
        )
        return False
    held = report(target, plan, functions)
    print(f"{time.monotonic() - started:.0f} s", flush=True)
    return held


def lay_out(work: Path, plan: dict[str, Any]) -> None:
    """Make the directory in which mutmut works: all packages at its root, and a configuration for this target."""
    work.mkdir(parents=True, exist_ok=True)
    for entry in (*PACKAGES, *BESIDE):
        link = work / Path(entry).name
        if not link.is_symlink():
            link.symlink_to(PROJECT / entry)
    (work / "canary.py").write_text(CANARY, "utf-8")
    settings = {
        "source_paths": [*(Path(package).name for package in PACKAGES), "canary.py"],
        "only_mutate": [*plan["modules"], "canary.py"],
        "also_copy": [entry for entry in BESIDE if entry != "tests"],
        "pytest_add_cli_args": [
            "-m",
            "not hypothesis",
            "-p",
            "canary",
            "-p",
            "no:cacheprovider",
            "--no-header",
        ],
        "pytest_add_cli_args_test_selection": plan["tests"],
        "timeout_multiplier": 3,
        "timeout_constant": 5,
        "use_git_change_detection": False,
    }
    lines = [f"{key} = {_toml(value)}" for key, value in settings.items()]
    ours = (PROJECT / "pyproject.toml").read_text("utf-8")
    (work / "pyproject.toml").write_text("\n".join([ours, "[tool.mutmut]", *lines, ""]), "utf-8")


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def forget_survivors(modules: list[str]) -> None:
    """Have mutmut try again what survived, with the tests of now."""
    Path("mutants", "mutmut-stats.json").unlink(missing_ok=True)
    for path in files_of(modules):
        data = SourceFileMutationData(path=path)
        data.load()
        for key, code in data.exit_code_by_key.items():
            if status_by_exit_code[code] not in KILLED:
                data.exit_code_by_key[key] = None
        if data.exit_code_by_key:
            data.save()


def files_of(modules: list[str]) -> list[Path]:
    """Return the files that the patterns of a target mean."""
    return [path for module in modules for path in sorted(Path().glob(module))]


def report(target: str, plan: dict[str, Any], functions: list[str]) -> bool:
    """Print what became of the mutants of one target, and return whether that is as it should be."""
    listed = {
        Mutant(entry["function"], entry["was"], entry["becomes"], entry.get("nth", 1)): entry["why"].strip()
        for entry in plan.get("survivor", ())
    }
    fates: dict[Mutant, str] = {}
    poor: list[str] = []
    print(f"\n{target:44}{'mutants':>9}{'killed':>9}{'':>9}{'listed':>9}{'unlisted':>9}")
    for path in files_of(plan["modules"]):
        of_module = fates_of(path)
        if functions:
            of_module = {mutant: fate for mutant, fate in of_module.items() if fate != "not checked"}
        if of_module:
            fates |= of_module
            survivors = [mutant for mutant, fate in of_module.items() if fate not in KILLED]
            killed = len(of_module) - len(survivors)
            known = sum(mutant in listed for mutant in survivors)
            numbers = f"{len(of_module):9}{killed:9}{killed / len(of_module):9.1%}{known:9}{len(survivors) - known:9}"
            print(f"  {path!s:42}{numbers}")
            if killed / len(of_module) < FLOOR:
                poor.append(f"{path}: fewer than {FLOOR:.0%} of the mutants are killed")
    unlisted = [mutant for mutant, fate in fates.items() if fate not in KILLED and mutant not in listed]
    unexplained = [mutant for mutant, why in listed.items() if not why]
    _say("not listed", (f"# {fates[mutant]}\n{mutant.toml()}" for mutant in unlisted))
    _say("listed without a reason", (mutant.toml() for mutant in unexplained))
    _say("listed, and killed now", (mutant.toml() for mutant in listed if fates.get(mutant) in KILLED))
    _say("listed, and no mutant any more", (mutant.toml() for mutant in listed if mutant not in fates))
    _say("too few", poor)
    return not (unlisted or unexplained or poor)


def _say(what: str, entries: Iterable[str]) -> None:
    for number, entry in enumerate(entries):
        print(f"{'' if number else f'== {what}:{chr(10)}'}{entry}")


def fates_of(path: Path) -> dict[Mutant, str]:
    """Return what became of each mutant of one module."""
    data = SourceFileMutationData(path=path)
    data.load()
    fates: dict[Mutant, str] = {}
    seen: Counter[Mutant] = Counter()
    for key, code in data.exit_code_by_key.items():
        name, cls = orig_function_and_class_names_from_key(key)
        module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
        diff = get_diff_for_mutant(key, path=path).splitlines()[2:]
        was, becomes = ("\n".join(line[1:].strip() for line in diff if line[0] == sign) for sign in "-+")
        mutant = Mutant(".".join(part for part in (module, cls, name) if part), was, becomes)
        seen[mutant] += 1
        if seen[mutant] > 1:
            mutant = Mutant(mutant.function, was, becomes, seen[mutant])
        fates[mutant] = status_by_exit_code[code]
    return fates


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""mutmut, which mutates decorated functions too.

mutmut leaves them alone, because it would decorate each of its copies.  Here the decorators stay where the function
is called, before the choice between the copies, and the copies have none; so a guarded callback and a property are
mutated as everything else is.  `staticmethod` and `classmethod` mutmut knows how to treat.
"""

import sys
from typing import Any

import libcst as cst
from mutmut.__main__ import cli
from mutmut.mutation import file_mutation

_passes_over = file_mutation.MutationVisitor._skip_node_and_children
_arrange = file_mutation.function_trampoline_arrangement


def _is_ours(node: cst.CSTNode) -> bool:
    names = {getattr(one.decorator, "value", None) for one in getattr(node, "decorators", ())}
    return isinstance(node, cst.FunctionDef) and not names & {"staticmethod", "classmethod"}


def passes_over(visitor: file_mutation.MutationVisitor, node: cst.CSTNode) -> bool:
    """Return whether a node is left as it is: not for its decorators."""
    return _passes_over(visitor, node.with_changes(decorators=()) if _is_ours(node) else node)


def arrange(function: cst.FunctionDef, mutants: Any, class_name: str | None) -> Any:
    """Return the copies of a function and what chooses between them, which alone is decorated."""
    if not _is_ours(function):
        return _arrange(function, mutants, class_name)
    declared, methods, assigned, names = _arrange(function.with_changes(decorators=()), mutants, class_name)
    chooser: Any = methods[0]
    methods = [
        chooser.with_changes(decorators=[*function.decorators, *chooser.decorators]),
        *methods[1:],
    ]
    return declared, methods, assigned, names


if __name__ == "__main__":
    file_mutation.MutationVisitor._skip_node_and_children = passes_over
    file_mutation.function_trampoline_arrangement = arrange
    sys.exit(cli())

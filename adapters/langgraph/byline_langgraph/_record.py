"""Recording an app that is called as ever: a callback handler that LangChain adds to every run by itself.

`register_configure_hook` makes LangChain ask a context variable for a handler whenever it starts a run.  While a
recording lasts the variable holds a `Watcher`, which gives each top-level run a handler of its own and passes the
callbacks of that run, and of all that run inside it, on to it.

What the observer of `attribute()` has and this one has not:

* The stream of the graph.  That a run waits for an answer is therefore told by the interrupts that leave the steps of
  the outermost graph, and the state by what the graph returned.  (`GraphCallbackHandler.on_interrupt` is no help: the
  handlers that a configure hook adds are not among those that LangGraph asks for the outermost graph.)
* Every token by itself.  Tokens are put aside, and told together when something else happens in the run or, by the
  recorder's thread, a moment later: a token costs the app an append.
* `tap_output_iter`.  A handler that has it makes LangChain stream models that the app only invokes, and streaming is
  another request to the provider.  A recording must not change one: what was not streamed is told when it is over.
"""

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import UUID

from byline import signals as s
from byline.plain import plain
from byline.recording import Observation, ObservedRun
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import register_configure_hook
from langgraph.errors import GraphInterrupt

from . import _compat
from ._handler import Handler
from ._outputs import interrupts_of
from ._session import NOT_STATE
from ._tree import is_step

if TYPE_CHECKING:
    from ._speech import Piece

__all__ = ["HandlerType", "Watcher", "observing"]

HandlerType: TypeAlias = Callable[[ObservedRun, frozenset[str], Any], Handler]
"""Makes the observer of one run, of what it reports to, the transparent names, and the run's input."""

_TRANSPARENT: Final = frozenset({"supervisor"})

_watching: Final[ContextVar["Watcher | None"]] = ContextVar("byline_recording", default=None)
register_configure_hook(_watching, inheritable=True)

_KEPT: Final = 256
"""How many ended runs are remembered for what outlived them."""


@contextlib.contextmanager
def observing(observation: Observation, handler: HandlerType | None = None) -> Iterator[None]:
    """Report what LangChain runs in this context to `observation`, through what `handler` makes for each run."""
    _compat.check()
    watcher = Watcher(observation, handler or _plain, _watching.get())
    token = _watching.set(watcher)
    try:
        yield
    finally:
        # A generator that is closed by the event loop ends in another context, where nothing was set.
        with contextlib.suppress(ValueError):
            _watching.reset(token)
        watcher.settle()


def _plain(run: ObservedRun, transparent: frozenset[str], _inputs: Any) -> Handler:
    return Handler(run, transparent)


class _Tree:
    """One top-level run and all that runs inside it."""

    __slots__ = ("asked", "due", "handler", "heard", "ids", "root", "run")

    def __init__(self, root: UUID, run: ObservedRun, handler: Handler) -> None:
        self.root: Final = root
        self.run: Final = run
        self.handler: Final = handler
        self.ids: Final[set[UUID]] = set()  # open runs
        self.asked: Final[dict[str, None]] = {}  # the interrupts that left a step of the outermost graph
        self.heard: Final[dict[UUID, list[Piece]]] = {}  # by model run, the tokens that were put aside
        self.due = False  # whether there are some

    def settle_soon(self) -> None:
        """Tell what was put aside, from the recorder's thread.

        Which must not wait for the run: the run may be waiting for it, to make room.
        """
        if not self.run.lock.acquire(blocking=False):
            self.run.observation.later(self.settle_soon, soon=True)
            return
        try:
            self.settle()
            self.run.settle()
        finally:
            self.run.lock.release()

    def settle(self) -> None:
        """Tell what was put aside, under the run's lock, before anything else is told.

        Tokens may be added meanwhile by another thread: what is there now is taken off the front.
        """
        if not self.due:
            return
        with self.run.lock:
            self.due = False
            for run_id, heard in list(self.heard.items()):
                if count := len(heard):
                    pieces = heard[:count]
                    del heard[:count]
                    self.handler.catch_up(run_id, pieces)


class Watcher(BaseCallbackHandler):
    """Gives each top-level run its handler.  `outer` is the recording around this one, which sees the same runs."""

    run_inline = True
    raise_error = False
    ignore_retriever = True
    ignore_retry = True
    # Of these the base class makes properties, which LangChain asks at every callback: a plain `False` is cheaper.
    ignore_llm = False
    ignore_chat_model = False
    ignore_chain = False
    ignore_agent = False
    ignore_custom_event = False

    def __init__(self, observation: Observation, handler: HandlerType, outer: "Watcher | None") -> None:
        super().__init__()
        self._observation: Final = observation
        self._handler: Final = handler
        self._outer: Final = outer
        self._raw_wanted: Final[bool] = observation.raw or (
            outer is not None and outer._raw_wanted  # noqa: SLF001
        )
        self._trees: Final[dict[UUID, tuple[_Tree, ...]]] = {}
        self._ears: Final[dict[UUID, list[tuple[_Tree, list[Piece]]]]] = {}  # by model run
        self._growing: Final[dict[UUID, _Tree]] = {}  # the trees whose run is not over, by root
        self._ended: Final[OrderedDict[UUID, frozenset[UUID]]] = OrderedDict()  # with what outlived them
        self.on_llm_new_token = self._listener()  # type: ignore[method-assign]

    def settle(self) -> None:
        """Tell all that was put aside."""
        for tree in list(self._growing.values()):
            tree.settle()

    # ---------------------------------------------------------------- starts

    def on_chain_start(
        self,
        serialized: dict[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        for tree in self._enter(run_id, parent_run_id, metadata, inputs):
            tree.handler.on_chain_start(
                serialized,
                inputs,
                run_id=run_id,
                parent_run_id=parent_run_id,
                tags=tags,
                metadata=metadata,
                **kwargs,
            )
            if self._raw_wanted:
                self._raw(tree, "on_chain_start", run_id, parent_run_id, kwargs.get("name"), inputs)

    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        for tree in self._enter(run_id, parent_run_id, metadata):
            tree.handler.on_tool_start(
                serialized,
                input_str,
                run_id=run_id,
                parent_run_id=parent_run_id,
                metadata=metadata,
                **kwargs,
            )
            if self._raw_wanted:
                self._raw(tree, "on_tool_start", run_id, parent_run_id, kwargs.get("name"), input_str)

    def on_chat_model_start(
        self,
        serialized: dict[str, Any] | None,
        messages: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        for tree in self._enter(run_id, parent_run_id, metadata):
            tree.handler.on_chat_model_start(
                serialized,
                messages,
                run_id=run_id,
                parent_run_id=parent_run_id,
                metadata=metadata,
                **kwargs,
            )
            self._ears.setdefault(run_id, []).append((tree, tree.heard.setdefault(run_id, [])))
            if self._raw_wanted:
                self._raw(tree, "on_chat_model_start", run_id, parent_run_id, kwargs.get("name"), messages)

    on_llm_start = on_chat_model_start  # type: ignore[assignment]  # as in the handler

    def _enter(
        self,
        run_id: UUID,
        parent_run_id: UUID | None,
        metadata: Mapping[str, Any] | None,
        inputs: Any = None,
    ) -> tuple[_Tree, ...]:
        trees = None if parent_run_id is None else self._trees.get(parent_run_id)
        if trees is None:
            if parent_run_id is not None and parent_run_id in self._ended:
                return ()  # too late to be told
            trees = self._plant(run_id, parent_run_id, metadata or {}, inputs)
        self._trees[run_id] = trees
        for tree in trees:
            tree.ids.add(run_id)
            if tree.due:
                tree.settle()
        return trees

    def _plant(
        self, run_id: UUID, parent_run_id: UUID | None, metadata: Mapping[str, Any], inputs: Any
    ) -> tuple[_Tree, ...]:
        """Begin a recorded run; one for each recording that does not see this one as part of another run."""
        trees: list[_Tree] = []
        watcher: Watcher | None = self
        while watcher is not None:
            if parent_run_id is None or parent_run_id not in watcher._trees:  # noqa: SLF001
                trees.append(watcher._tree(run_id, metadata, inputs))  # noqa: SLF001
            watcher = watcher._outer  # noqa: SLF001
        return tuple(trees)

    def _tree(self, run_id: UUID, metadata: Mapping[str, Any], inputs: Any) -> _Tree:
        thread = metadata.get("thread_id")
        run = self._observation.begin(str(run_id if thread is None else thread), str(run_id))
        tree = self._growing[run_id] = _Tree(run_id, run, self._handler(run, _TRANSPARENT, inputs))
        return tree

    # ----------------------------------------------------------- in between

    def _listener(self) -> Callable[..., None]:
        """Return `on_llm_new_token`, which is called more often than all else together, and may be the app's hot path.

        A function of its own costs LangChain less than a method: it asks at every call what kind of thing this is.
        Of plain text only the text is put aside: a chunk, kept for a moment, would cost the cache of the processor.
        """
        ears, raw = self._ears, self._raw_wanted

        def on_llm_new_token(
            token: Any,
            *,
            chunk: Any = None,
            run_id: UUID,
            parent_run_id: Any = None,  # noqa: ARG001 - named, or every call would make a dict of them
            tags: Any = None,  # noqa: ARG001
            **_: Any,
        ) -> None:
            for tree, heard in ears.get(run_id, ()):
                try:
                    message = chunk.message
                    piece = message.content
                    if type(piece) is not str or message.additional_kwargs or message.tool_call_chunks:
                        piece = (token, chunk)
                except AttributeError:  # no chunk, or not one of a chat model
                    piece = (token, chunk)
                heard.append(piece)
                if not tree.due:
                    tree.due = True
                    tree.run.observation.later(tree.settle_soon, soon=True)
                if raw:
                    tree.settle()
                    self._raw(tree, "on_llm_new_token", run_id, None, None, token)

        return on_llm_new_token

    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **kwargs: Any) -> None:
        for tree in self._told(run_id):
            tree.handler.on_custom_event(name, data, run_id=run_id, **kwargs)
            if self._raw_wanted:
                self._raw(tree, "on_custom_event", run_id, None, name, data)

    def _told(self, run_id: UUID) -> tuple[_Tree, ...]:
        """Return whom something is told that happened to `run_id`, after all that was put aside."""
        trees = self._trees.get(run_id, ())
        for tree in trees:
            if tree.due:
                tree.settle()
        return trees

    # ------------------------------------------------------------------ ends

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        for tree in self._told(run_id):
            if self._raw_wanted:
                self._raw(tree, "on_chain_end", run_id, None, None, outputs)
            tree.handler.on_chain_end(outputs, run_id=run_id, **kwargs)
            if run_id == tree.root:
                self._state(tree, outputs)
        self._leave(run_id, None)

    def on_chain_error(
        self,
        error: BaseException,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        **kwargs: Any,
    ) -> None:
        for tree in self._told(run_id):
            if self._raw_wanted:
                self._raw(tree, "on_chain_error", run_id, None, None, repr(error))
            if isinstance(error, GraphInterrupt) and parent_run_id == tree.root and is_step(tags):
                for interrupt in interrupts_of(error):
                    tree.asked[str(interrupt.id)] = None
            tree.handler.on_chain_error(error, run_id=run_id, **kwargs)
        self._leave(run_id, error)

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        for tree in self._told(run_id):
            if self._raw_wanted:
                self._raw(tree, "on_tool_end", run_id, None, None, output)
            tree.handler.on_tool_end(output, run_id=run_id, **kwargs)
        self._leave(run_id, None)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        for tree in self._told(run_id):
            if self._raw_wanted:
                self._raw(tree, "on_tool_error", run_id, None, None, repr(error))
            tree.handler.on_tool_error(error, run_id=run_id, **kwargs)
        self._leave(run_id, error)

    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:
        for tree in self._told(run_id):
            if self._raw_wanted:
                self._raw(tree, "on_llm_end", run_id, None, None, response)
            tree.handler.on_llm_end(response, run_id=run_id, **kwargs)
        self._silence(run_id)
        self._leave(run_id, None)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        for tree in self._told(run_id):
            if self._raw_wanted:
                self._raw(tree, "on_llm_error", run_id, None, None, repr(error))
            tree.handler.on_llm_error(error, run_id=run_id, **kwargs)
        self._silence(run_id)
        self._leave(run_id, error)

    def _silence(self, run_id: UUID) -> None:
        for tree, _ in self._ears.pop(run_id, ()):
            tree.heard.pop(run_id, None)

    def _leave(self, run_id: UUID, error: BaseException | None) -> None:
        for tree in self._trees.pop(run_id, ()):
            tree.ids.discard(run_id)
            if run_id == tree.root:
                self._end(tree, error)

    def _end(self, tree: _Tree, error: BaseException | None) -> None:
        self._growing.pop(tree.root, None)
        self._ended[tree.root] = frozenset(tree.ids)
        while len(self._ended) > _KEPT:  # what never told its end: a model whose sibling failed
            _root, rest = self._ended.popitem(last=False)
            for id_ in rest:
                self._trees.pop(id_, None)
                self._silence(id_)
        if error is None or isinstance(error, GraphInterrupt):
            how: Any = s.RunFinished(asked=tuple(tree.asked))
        elif isinstance(error, Exception):
            how = s.RunFailed(str(error) or type(error).__name__, type(error).__name__)
        else:  # CancelledError, GeneratorExit, KeyboardInterrupt: nobody wants the rest
            how = s.RunCancelled(f"the app stopped the run ({type(error).__name__})")
        if tree.run.silent and not tree.handler.scopes:
            tree.run.forget()
        else:
            tree.run.end(how)

    def _state(self, tree: _Tree, outputs: Any) -> None:
        """Report the state as the outermost graph returned it."""
        if isinstance(outputs, Mapping) and tree.handler.scopes:
            state = plain({str(key): value for key, value in outputs.items() if key not in NOT_STATE})
            if state:
                tree.run.report(s.StateIs(None, state))

    def _raw(
        self, tree: _Tree, callback: str, run_id: UUID, parent_run_id: UUID | None, name: Any, data: Any
    ) -> None:
        if not tree.run.observation.raw:
            return
        event = {"callback": callback, "run_id": str(run_id), "data": data}
        if parent_run_id is not None:
            event["parent_run_id"] = str(parent_run_id)
        if name:
            event["name"] = str(name)
        tree.run.report(s.Raw(tree.handler.owner_of(run_id), event, "langchain"))

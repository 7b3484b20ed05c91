"""A framework of a few lines, for what is common to all adapters."""

from byline import signals as s
from byline.hooks import hookimpl


class App:
    """What a user would have: `work` is an async function of (report, sink)."""

    def __init__(self, work):
        self.work = work


class Session:
    thread_id = "t"
    run_id = "r"
    parent_run_id = None
    history = ()
    result = None

    def __init__(self, app, refuse=None):
        self.app = app
        self.refuse = refuse

    async def prepare(self):
        if self.refuse is not None:
            raise self.refuse

    async def drive(self, sink):
        end = await self.app.work(sink)
        self.result = "the app's own"
        return end or s.RunFinished()


class Bound:
    def __init__(self, app, options):
        self.app = app
        self.options = options

    def open(self, run_input):
        session = Session(self.app, self.options.get("refuse"))
        session.thread_id, session.run_id = run_input.thread_id, run_input.run_id
        return session

    def open_native(self):
        return Session(self.app)


class FakeAdapter:
    name = "fake"
    extra = "fake"
    requires = ("json",)

    def takes(self, target):
        return isinstance(target, App)

    def hint(self, target):
        return "call it first" if target is App else None

    def bind(self, target, plugins, **options):
        return Bound(target, options)


class Plugin:
    @hookimpl
    def byline_adapters(self):
        return [FakeAdapter()]


plugin = Plugin()
INPUT = {"threadId": "t", "runId": "r", "messages": []}


def two_at_once():
    """Alpha and beta, children of the parent agent, and leaf, a child of beta."""
    return [
        s.Call(None, "m0", "c1", "ask"),
        s.Opened("a", "alpha", "alpha-1", None, s.CallRef(None, "c1")),
        s.Opened("b", "beta", "beta-1"),
        s.Text("a", "m1", "alpha "),
        s.Text("b", "m2", "beta "),
        s.Call("b", "m2", "c2", "ask_leaf"),
        s.Opened("l", "leaf", "leaf-1", "b", s.CallRef("b", "c2")),
        s.Text("l", "m3", "leaf"),
        s.Closed("l"),
        s.Result("b", "c2", "leaf"),
        s.Text("a", "m1", "one"),
        s.Closed("a"),
        s.Closed("b"),
        s.Result(None, "c1", "alpha one"),
    ]


def scripted(*signals, end=None):
    async def work(sink):
        for signal in signals:
            sink.report(signal)
        return end

    return App(work)


__all__ = ["INPUT", "App", "plugin", "scripted", "two_at_once"]

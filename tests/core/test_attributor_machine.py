"""Signals in any order: the stream stays legal, and every character stays with its owner.

Two judges that share no code: the validator's producer profile and the naive replay of `naive.py`.
"""

import json
from collections import defaultdict

from ag_ui.core import AssistantMessage, FunctionCall, ToolCall, ToolMessage, UserMessage
from byline import signals as s
from byline.attributor import Attributor
from byline.events import TokenUsage, encode
from byline.validator import Validator
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from naive import Replay

KEYS = ["a", "b", "c"]
OWNERS = st.sampled_from([None, *KEYS])
RUNS = st.sampled_from(["m1", "m1", "call_0", "m1:reasoning"])
CALLS = st.sampled_from(["call_0", "call_0", "call_1", "m1", "call_0#2", "call_0@a"])
IDS = st.sampled_from([None, "x", "y", "a"])
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
NAMES = st.sampled_from(["alpha", "beta", ""])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)
QUESTIONS = st.sampled_from(["q1", "q2", "q3"])
HISTORY = [
    UserMessage(id="u1", role="user", content="hi"),
    AssistantMessage(
        id="m1",
        role="assistant",
        tool_calls=[ToolCall(id="call_0", function=FunctionCall(name="f", arguments="{}"))],
    ),
    AssistantMessage(
        id="old",
        role="assistant",
        subagent_run_id="x",
        tool_calls=[
            ToolCall(id="call_0@x", function=FunctionCall(name="f", arguments="{}")),
            ToolCall(id="call_1", function=FunctionCall(name="f", arguments="{}")),
        ],
    ),
    ToolMessage(id="t1", role="tool", tool_call_id="call_1", content="done"),
]


class AnyOrder(RuleBasedStateMachine):
    @initialize(history=st.booleans())
    def start(self, history):
        self.attributor = Attributor("t", "r", history=HISTORY if history else ())
        self.validator = Validator(profile="producer")
        self.replay = Replay()
        self.lines = []
        self.findings = []
        self.reported = defaultdict(list)  # key -> [(kind, delta)]
        self.texts = defaultdict(lambda: defaultdict(str))  # key -> {run: text}
        self._take(self.attributor.start())

    def _take(self, events):
        for event in events:
            line = encode(event)
            self.lines.append(line)
            self.findings += [f for f in self.validator.feed(line.encode()) if f.level == "error"]
            self.replay.line(line)

    def send(self, signal):
        over = self.attributor.over
        dropped = self.attributor.dropped
        events = self.attributor.feed(signal)
        assert not over or (events == [] and self.attributor.dropped == dropped + 1)
        self._take(events)
        if self.attributor.over and events:
            self.children_first(events)
        assert not self.findings, (signal, self.findings)
        return not over

    def children_first(self, events):
        """What the end closes by force, it closes from the inside out."""
        parents = {e["subagentRunId"]: e.get("parentSubagentRunId") for e in self.replay.announced}
        ended = [e.subagent_run_id for e in events if e.type.value in ("SUBAGENT_FINISHED", "SUBAGENT_ERROR")]
        for at, tag in enumerate(ended):
            assert parents[tag] not in ended[:at], ended

    @rule(
        key=st.sampled_from(KEYS), id_=IDS, name=NAMES, parent=OWNERS, caller=OWNERS, call=st.none() | CALLS
    )
    def opened(self, key, id_, name, parent, caller, call):
        spawned = None if call is None else s.CallRef(caller, call)
        self.send(s.Opened(key, name, id_, parent, spawned, metadata={"key": key}))

    @rule(key=st.sampled_from(KEYS), result=st.just(s.ABSENT) | JSON)
    def closed(self, key, result):
        self.send(s.Closed(key, result))

    @rule(key=st.sampled_from(KEYS), message=WORDS, code=st.none() | WORDS)
    def failed(self, key, message, code):
        self.send(s.Failed(key, message, code))

    @rule(key=st.sampled_from(KEYS))
    def suspended(self, key):
        self.send(s.Suspended(key))

    @rule(owner=OWNERS, run=RUNS, said=st.lists(st.tuples(st.booleans(), WORDS), min_size=1, max_size=4))
    def says(self, owner, run, said):
        for aloud, delta in said:
            signal = s.Text(owner, run, delta) if aloud else s.Reasoning(owner, run, delta)
            if self.send(signal) and delta:
                self.reported[owner].append(("text" if aloud else "reasoning", delta))
                if aloud:
                    self.texts[owner][run] += delta

    @rule(owner=OWNERS, run=RUNS, call=CALLS, name=NAMES)
    def call(self, owner, run, call, name):
        self.send(s.Call(owner, run, call, name))

    @rule(owner=OWNERS, run=RUNS, call=CALLS, delta=WORDS)
    def arguments(self, owner, run, call, delta):
        if self.send(s.Arguments(owner, run, call, delta)) and delta:
            self.reported[owner].append(("arguments", delta))

    @rule(owner=OWNERS, run=RUNS)
    def model_over(self, owner, run):
        self.send(s.ModelOver(owner, run))

    @rule(owner=OWNERS, call=CALLS, content=WORDS | st.lists(JSON, max_size=2))
    def result(self, owner, call, content):
        self.send(s.Result(owner, call, content))

    @rule(
        owner=OWNERS,
        id_=st.sampled_from(["act", "m1", "call_0"]),
        content=st.dictionaries(WORDS, JSON, max_size=2),
    )
    def activity(self, owner, id_, content):
        self.send(s.Activity(owner, id_, "plan", content))

    @rule(owner=OWNERS, name=NAMES, start=st.booleans())
    def step(self, owner, name, start):
        self.send(s.StepStarted(owner, name) if start else s.StepFinished(owner, name))

    @rule(owner=OWNERS, state=JSON)
    def state_is(self, owner, state):
        self.send(s.StateIs(owner, state))

    @rule(owner=OWNERS, changes=st.dictionaries(WORDS, JSON, max_size=2))
    def state_changed(self, owner, changes):
        self.send(s.StateChanged(owner, changes))

    @rule(owner=OWNERS, model=NAMES, tokens=st.none() | st.integers(0, 2**40))
    def usage(self, owner, model, tokens):
        self.send(s.Usage(owner, TokenUsage(model=model, input_tokens=tokens, output_tokens=3)))

    @rule(owner=OWNERS, id_=QUESTIONS, call=st.none() | CALLS)
    def question(self, owner, id_, call):
        self.send(
            s.Question(owner, id_, "approve", call=call, schema={"type": "object"}, metadata={"a": None})
        )

    @rule(owner=OWNERS, value=JSON)
    def custom(self, owner, value):
        self.send(s.Custom(owner, "app", value))
        self.send(s.Raw(owner, value, "framework"))

    # The end comes seldom: most of what can go wrong goes wrong before it.

    @precondition(lambda self: len(self.lines) > 12)
    @rule(asked=st.lists(QUESTIONS | st.just("unseen"), max_size=3), result=st.just(s.ABSENT) | JSON)
    def finished(self, asked, result):
        self.send(s.RunFinished(result, asked))

    @precondition(lambda self: len(self.lines) > 12)
    @rule(failed=st.booleans())
    def stopped(self, failed):
        self.send(s.RunFailed("no", "E") if failed else s.RunCancelled())

    def teardown(self):
        if not hasattr(self, "attributor"):
            return
        if not self.attributor.over:
            self.send(s.RunFinished())
        errors = [f for f in self.validator.finish() if f.level == "error"]
        assert not errors, errors
        assert '"subagentRunId":null' not in "".join(self.lines)
        tags = {None: None}
        for event in self.replay.announced:
            tags[event.get("metadata", {}).get("byline", {}).get("key", event["name"])] = event[
                "subagentRunId"
            ]
        for key, reported in self.reported.items():
            assert self.replay.deltas[tags[key]] == reported
            assert list(self.replay.messages[tags[key]].values()) == [
                t for t in self.texts[key].values() if t
            ]
        silent = set(self.replay.deltas) - {tags[key] for key in self.reported}
        assert all(not self.replay.deltas[tag] for tag in silent)
        assert set(self.replay.ended) == {event["subagentRunId"] for event in self.replay.announced}
        for line in self.lines:
            assert "usage" not in json.loads(line) or json.loads(line)["type"] in (
                "RUN_FINISHED",
                "RUN_ERROR",
            )


AnyOrder.TestCase.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestAnyOrder = AnyOrder.TestCase

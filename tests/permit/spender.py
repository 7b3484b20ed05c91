"""One of several processes that do the same thing at the same time: `python spender.py URL THREADS WHAT...`.

Says "ready", waits for a line on its standard input, and prints what its threads did as JSON.
"""

import json
import sys
import threading

from byline.grants import Attempt, Grants, ReplayedError
from byline.stores import open_store
from byline.team import AgentRecord, LinksRefusedError, Team, TeamError

SECRET = b"0123456789abcdef0123456789abcdef"
ATTEMPT = Attempt("ann", "run-1", "boss", "thread-1")


def spend(url, threads, tokens):
    """Every thread tries to spend every grant; all share one store, as they would in a server."""
    service = Grants(SECRET, ledger=open_store(url).grants)
    won = []

    def work():
        for number, token in enumerate(tokens):
            try:
                service.admit(token, ATTEMPT)
            except ReplayedError:
                continue
            won.append(number)

    return at_once(threads, work), won


def first(url, threads, _):
    """Every thread has a store of its own and is its first user."""
    done = []

    def work():
        store = open_store(url)
        done.append(store.grants.spend("the one", 4_000_000_000))
        store.close()

    return at_once(threads, work), done


def link(url, threads, names):
    """Every thread links one agent to the next in a circle that must never close."""
    team = Team(open_store(url).teams)
    refused = []

    def work():
        for parent, target in zip(names, names[1:] + names[:1], strict=True):
            try:
                team.save(parent, [target], caller="ann")
            except LinksRefusedError as fault:
                refused.extend(reason.code for reason in fault.reasons)

    return at_once(threads, work), sorted(set(refused))


def add(url, threads, names):
    """Every thread adds the same agents; each can be added once."""
    team = Team(open_store(url).teams)
    added = []

    def work():
        for name in names:
            try:
                added.append(team.add(AgentRecord(name, "ann"), caller="ann").id)
            except TeamError:
                continue

    return at_once(threads, work), added


def at_once(count, work):
    faults = []
    start = threading.Barrier(count + 1)

    def run():
        start.wait()
        try:
            work()
        except BaseException as fault:
            faults.append(f"{type(fault).__name__}: {fault}")

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    sys.stdin.readline()
    start.wait()
    for thread in threads:
        thread.join()
    return faults


if __name__ == "__main__":
    what, url, threads, *rest = sys.argv[1:]
    faults, result = {"spend": spend, "first": first, "link": link, "add": add}[what](url, int(threads), rest)
    print(json.dumps({"faults": faults, "result": result}))

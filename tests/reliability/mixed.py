"""Mixed writes for servers that are to be killed or that share a file, and what they must leave.

Calls of one server run in the order in which they were sent. So whatever ends it, the file holds
what its acknowledged calls made, and what the first few of those still unanswered make.
"""

import random
from typing import Any, Final

WORDS: Final = "amber basil cedar delta ember fjord grove heron inlet jetty".split()

#: Contents by id; what the documents hold besides is made from their content.
Contents = dict[str, str]


def content(chance: random.Random) -> str:
    """From an empty text to one of some dozens of chunks."""
    return " ".join(chance.choices(WORDS, k=int(chance.paretovariate(0.7)) % 6_000))


def write(chance: random.Random, names: list[str]) -> tuple[str, dict[str, Any]]:
    """A tool that writes, and its arguments."""
    name = chance.choice(names)
    if chance.random() < 0.3:
        return "delete_document", {"id": name}
    text = content(chance)
    return "store_document", {
        "id": name,
        "title": chance.choice(WORDS),
        "content": text,
        "tags": sorted(set(text.split()[:3])),
        "relations": [{"src": name, "rel": "is", "dst": text[:20] or "empty"}],
    }


def applied(held: Contents, tool: str, arguments: dict[str, Any]) -> Contents:
    """What there is after a write."""
    left = {name: text for name, text in held.items() if name != arguments["id"]}
    if tool == "store_document":
        left[arguments["id"]] = arguments["content"]
    return left


def possible(held: Contents, unanswered: list[tuple[str, dict[str, Any]]]) -> list[Contents]:
    """What there may be once any number of the unanswered calls have run, in their order."""
    states = [held]
    for tool, arguments in unanswered:
        states.append(applied(states[-1], tool, arguments))
    return states

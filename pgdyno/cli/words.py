"""Reading `--users 2000000` as a workload parameter: pure rewriting of a command line's words.

A workload's parameters are not known before it is read, so every long option that the command does
not know becomes `--param name=value`, wherever it stands.

>>> name_parameters(["userlogin", "--users", "5", "--clients", "4"], known={"--clients"})
['userlogin', '--param', 'users=5', '--clients', '4']
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pgdyno.errors import InvalidInput


def name_parameters(words: Sequence[str], known: Collection[str]) -> list[str]:
    """The words with unknown long options written as `--param name=value`.

    The value is the next word unless it stands behind a `=`. Raises `InvalidInput` for an unknown
    option without a value.
    """
    rest: list[str] = list(words)
    rewritten: list[str] = []
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            return [*rewritten, word, *rest]
        if not word.startswith("--") or name in known:
            rewritten.append(word)
            continue
        if not equals:
            if not rest or rest[0].startswith("--"):
                raise InvalidInput(
                    f"option {word} is not known, and as a workload parameter it has no value",
                    hint=f"write {word} VALUE, or see pgdyno run --help",
                )
            value = rest.pop(0)
        rewritten += ["--param", f"{name[2:].replace('-', '_')}={value}"]
    return rewritten

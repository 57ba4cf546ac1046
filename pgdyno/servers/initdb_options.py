"""What is fixed when a cluster is made, from a person's words to options of initdb. Pure.

Clusters are UTF8 with the C locale unless something else is asked for, so that sorting costs the
same everywhere. The options are part of a loaded state's identity: data of clusters made
differently are never exchanged.

>>> initdb_options(initdb_choice({"checksums": "on", "wal_segment_size": "64MB"}), 150018)
('--encoding=UTF8', '--locale=C', '--data-checksums', '--wal-segsize=64')
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError

from pgdyno.errors import InvalidInput, Problems, nearest_hint
from pgdyno.model import InitdbChoice
from pgdyno.servers.translation import comparable_locale
from pgdyno.units import format_bytes, parse_bytes

DEFAULT_OPTIONS: Final = ("--encoding=UTF8", "--locale=C")
_MB: Final = 1024**2
_TRUTHS: Final = {
    **dict.fromkeys(("on", "true", "yes", "1"), True),
    **dict.fromkeys(("off", "false", "no", "0"), False),
}
_WORDS: Final = {
    "checksums": "checksums",
    "data_checksums": "checksums",
    "wal_segment_size": "wal_segment_bytes",
    "locale": "locale",
    "encoding": "encoding",
    "locale_provider": "locale_provider",
    "icu_locale": "icu_locale",
}
_CHECKSUMS_BY_DEFAULT_SINCE: Final = 180000


def initdb_choice(given: Mapping[str, str]) -> InitdbChoice:
    """What `--initdb name=value` asks for; raises `Problems` with every name and value that is not.

    Names: checksums, wal_segment_size, locale, encoding, locale_provider, icu_locale.
    """
    fields: dict[str, Any] = {}
    problems = []
    for name, text in given.items():
        field = _WORDS.get(name.lower().replace("-", "_"))
        if field is None:
            problems.append(f"initdb option '{name}' is not known: {nearest_hint(name, _WORDS)}")
            continue
        try:
            fields[field] = _value(field, text)
            InitdbChoice.model_validate({field: fields[field]})
        except InvalidInput as error:
            problems.append(f"initdb option '{name}': {error.message}")
        except ValidationError:
            problems.append(f"initdb option '{name}' cannot be '{text}': say libc, icu or builtin")
    if problems:
        raise Problems(problems)
    return InitdbChoice.model_validate(fields)


def initdb_options(choice: InitdbChoice, version_num: int) -> tuple[str, ...]:
    """Options of that version's initdb; raises `Problems` for what it cannot do."""
    problems = list(_problems(choice, version_num))
    if problems:
        raise Problems(problems)
    return tuple(_options(choice, version_num))


def check_initdb(
    choice: InitdbChoice, version_num: int, locales: frozenset[str] | None
) -> tuple[str, ...]:
    """The options, where that version and this machine can do them; raises `Problems` where not.

    `locales` are those installed, as `comparable_locale` writes them; None: nobody knows.
    """
    problems = list(_problems(choice, version_num))
    foreign = choice.locale is not None and choice.locale_provider in {None, "libc"}
    if foreign and locales is not None:
        name = choice.locale or "C"
        if name not in {"C", "POSIX"} and comparable_locale(name) not in locales:
            problems.append(f"locale '{name}' is not installed: locale -a lists those that are")
    if problems:
        raise Problems(problems)
    return tuple(_options(choice, version_num))


def is_asked_for(choice: InitdbChoice) -> bool:
    """Whether anything else than the default is asked for."""
    return choice != InitdbChoice()


def _options(choice: InitdbChoice, version_num: int) -> Iterator[str]:
    yield f"--encoding={choice.encoding or 'UTF8'}"
    yield f"--locale={choice.locale or 'C'}"
    if choice.checksums:
        yield "--data-checksums"
    elif choice.checksums is False and version_num >= _CHECKSUMS_BY_DEFAULT_SINCE:
        yield "--no-data-checksums"
    if choice.wal_segment_bytes is not None and version_num >= 110000:
        yield f"--wal-segsize={choice.wal_segment_bytes // _MB}"
    if choice.locale_provider is not None and version_num >= 150000:
        yield f"--locale-provider={choice.locale_provider}"
    if choice.icu_locale is not None:
        yield f"--icu-locale={choice.icu_locale}"


def _problems(choice: InitdbChoice, version_num: int) -> Iterator[str]:
    """What cannot be, by itself or with that version."""
    segment_bytes = choice.wal_segment_bytes
    if segment_bytes is not None:
        megabytes, rest = divmod(segment_bytes, _MB)
        if rest or megabytes not in {2**power for power in range(11)}:
            yield (
                f"a WAL segment cannot be {format_bytes(segment_bytes)}: it is a power of two "
                "from 1MB to 1GB"
            )
        elif version_num < 110000 and megabytes != 16:
            yield "before PostgreSQL 11 the WAL segment size is fixed when the server is built"
    if choice.locale_provider in {"icu", "builtin"}:
        since = 150000 if choice.locale_provider == "icu" else 170000
        if version_num < since:
            yield f"locale provider {choice.locale_provider} is there since {since // 10000}"
        elif choice.locale_provider == "icu" and choice.icu_locale is None:
            yield "locale provider icu needs an icu_locale, for example icu_locale=en-US"
    if choice.icu_locale is not None and choice.locale_provider != "icu":
        yield "icu_locale needs locale_provider=icu"


def _value(field: str, text: str) -> bool | int | str:
    if field == "checksums":
        if text.lower() not in _TRUTHS:
            raise InvalidInput(f"'{text}' is neither on nor off")
        return _TRUTHS[text.lower()]
    if field == "wal_segment_bytes":
        return parse_bytes(f"{text}MB" if text.isdigit() else text)
    return text

"""A known secret is masked in whatever common form it comes back, and ordinary text is left alone."""

from __future__ import annotations

import base64
import html
import json
import quopri
import random
import re
import shlex
import urllib.parse
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic_core import to_json

from tests.cases import each
from tests.properties import examples
from toolcrib.secrets import Redactor, UnfitSecret, why_unusable
from toolcrib.secrets.dumps import dumps_in
from toolcrib.visible import INVISIBLE

VALUES = {
    "TOKEN": "sk-live-9f8A/7+z\"Q&=xx Y'w",
    "PHRASE": "correct horse battery",
    "PLAIN": "Zk3vQ9xW2mL7pR4t",
    "UMLAUT": "grüße-aus-köln-42",
    "ESCAPES": r"C:\new\table%41&amp;rest",
    "SHORT": 'h2"nt&r',
    "TINY": "Qx7-z9",
    "PIN": "83920174",
}

# Each makes of a value what a program might print of it; the value's own bytes where it is about bytes.
FORMS: dict[str, Callable[[str], str]] = {
    "as it stands": str,
    "reversed": lambda v: v[::-1],
    "json": lambda v: json.dumps(v),
    "json without ascii": lambda v: json.dumps(v, ensure_ascii=False),
    "json with slashes escaped": lambda v: json.dumps(v).replace("/", "\\/"),
    "html": html.escape,
    "html without quotes": lambda v: html.escape(v, quote=False),
    "url": urllib.parse.quote,
    "url, everything": lambda v: urllib.parse.quote(v, safe=""),
    "url form": urllib.parse.quote_plus,
    "url, lower case": lambda v: "".join(f"%{b:02x}" for b in v.encode()),
    "shell": shlex.quote,
    "repr": repr,
    "ascii": ascii,
    "url, latin-1": lambda v: urllib.parse.quote(v, encoding="latin-1"),
    "hex": lambda v: v.encode().hex(),
    "HEX": lambda v: v.encode().hex().upper(),
    "octal": lambda v: " ".join(f"{b:o}" for b in v.encode()),
    "octal of three digits": lambda v: "\n".join(f"{b:03o}" for b in v.encode()),
    "base32": lambda v: base64.b32encode(v.encode()).decode(),
    "utf-16": lambda v: v.encode("utf-16-le").decode("latin-1") if v.isascii() else v,
    "terminal colour around": lambda v: f"\x1b[31m{v}\x1b[0m",
}
# Forms that only a longer value is recognised in: of a short one, too little would be left.
LONG_FORMS: dict[str, Callable[[str], str]] = {
    "upper case": str.upper,
    "lower case": str.lower,
    "capitalised": str.title,
    "upper case, reversed": lambda v: v.upper()[::-1],
    "json twice": lambda v: json.dumps(json.dumps(v)),
    "url of json": lambda v: urllib.parse.quote(json.dumps(v)),
    "url twice": lambda v: urllib.parse.quote(urllib.parse.quote(v, safe=""), safe=""),
    "no-break spaces": lambda v: v.replace(" ", "\u00a0"),
    "html no-break spaces": lambda v: html.escape(v).replace(" ", "&nbsp;"),
    "a link of a terminal": lambda v: (
        f"\x1b]8;;https://x/?k={urllib.parse.quote(v, safe='')}\x07here\x1b]8;;\x07"
    ),
    "behind the beginning of a terminal's sequence": lambda v: '\x1b["' + urllib.parse.quote(v, safe=""),
    "the same as JSON, twice": lambda v: json.dumps(json.dumps('\x1b["' + urllib.parse.quote(v, safe=""))),
    "html numbers": lambda v: "".join(f"&#{ord(c)};" for c in v),
    "html hex numbers": lambda v: "".join(f"&#x{ord(c):x};" for c in v),
    "\\u": lambda v: "".join(f"\\u{ord(c):04x}" for c in v),
    "\\x": lambda v: "".join(f"\\x{b:02x}" for b in v.encode()),
    "octal": lambda v: "".join(f"\\{b:03o}" for b in v.encode()),
    "hex with colons": lambda v: v.encode().hex(":"),
    "hex with blanks": lambda v: v.encode().hex(" "),
    "C bytes": lambda v: ", ".join(f"0x{b:02X}" for b in v.encode()),
    "python list": lambda v: str(list(v.encode())),
    "blanks between": lambda v: " ".join(v),
    "a line each": lambda v: "\n".join(v),
    "colours between": lambda v: "\x1b[1;32m".join(v),
    "zero width between": lambda v: "\u200b".join(v),
    "marks of direction between": lambda v: "\u202a".join(v),
    "selectors between": lambda v: "\ufe0f".join(v),
    "wrapped in a drawn table": lambda v: f"\u2502 {v[:9]} \u2502\n\u2502 {v[9:]} \u2502",
    "wide spaces between": lambda v: "\u3000".join(v),
    "string pieces": lambda v: json.dumps(v[:5]) + " + " + json.dumps(v[5:]),
    "powershell": lambda v: base64.b64encode(v.encode("utf-16-le")).decode(),
}


def _words(data: bytes, size: int, shape: str) -> list[str]:
    return [shape % int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]


# One line of each dump, as the program prints it.
DUMPS: dict[str, Callable[[bytes], str]] = {
    "xxd": lambda b: f": {b.hex(' ', -2):<40} {''.join(chr(c) if 32 <= c < 127 else '.' for c in b)}",
    "xxd -g1": lambda b: f": {b.hex(' '):<48} {''.join(chr(c) if 32 <= c < 127 else '.' for c in b)}",
    "hexdump -C": lambda b: f"  {b.hex(' '):<48}  |{''.join(chr(c) if 32 <= c < 127 else '.' for c in b)}|",
    "hexdump": lambda b: " " + " ".join(_words(b, 2, "%04x")),
    "xxd -b": lambda b: ": " + " ".join(f"{c:08b}" for c in b) + f"  {''.join(chr(c) if 32 <= c < 127 else '.' for c in b)}",
    "od": lambda b: " " + " ".join(_words(b, 2, "%06o")),
    "od -x": lambda b: " " + " ".join(_words(b, 2, "%04x")),
    "od -t x4": lambda b: " " + " ".join(_words(b, 4, "%08x")),
    "od -b": lambda b: " " + " ".join(_words(b, 1, "%03o")),
    "od -t u1": lambda b: " " + " ".join(_words(b, 1, "%4d")),
    "od -t u2": lambda b: " " + " ".join(_words(b, 2, "%6d")),
    "od -c": lambda b: "   " + "   ".join(chr(c) if 32 <= c < 127 else f"{c:03o}" for c in b),
    "od -t x1z": lambda b: f" {b.hex(' '):<48}  >{''.join(chr(c) if 32 <= c < 127 else '.' for c in b)}<",
}  # fmt: skip
BACK_ENDS = [pytest.param(False, id="plain"), pytest.param(True, id="automaton")]


@pytest.fixture(scope="module", params=BACK_ENDS)
def redactor(request: pytest.FixtureRequest) -> Redactor:
    if request.param:
        pytest.importorskip("ahocorasick")
    return Redactor(VALUES, automaton=request.param)


@each("form", FORMS)
@each("name", VALUES)
def test_every_form_is_masked(redactor: Redactor, name: str, form: str) -> None:
    written = FORMS[form](VALUES[name])
    done = redactor.redact_text(f"before {written} after")
    assert done.found == (name,)
    assert written.strip("'\"") not in done.value
    assert done.value.startswith("before ") and done.value.endswith(" after")
    assert f"[secret {name}]" in done.value


@each("form", LONG_FORMS)
@each("name", ["TOKEN", "PHRASE", "PLAIN", "UMLAUT"])
def test_a_long_value_is_found_in_more_forms(redactor: Redactor, name: str, form: str) -> None:
    written = LONG_FORMS[form](VALUES[name])
    done = redactor.redact_text(f"before\n{written}\nafter")
    assert done.found == (name,)
    assert written not in done.value


def test_white_space_and_what_nobody_sees_within_a_value_do_not_hide_it(redactor: Redactor) -> None:
    signs = map(chr, (*range(0xD800), *range(0xE000, 0x1F000), *range(0xE0000, 0xE1000)))
    unseen = [sign for sign in signs if sign.isspace() or INVISIBLE.match(sign)]
    start, end = VALUES["PLAIN"][:9], VALUES["PLAIN"][9:]
    shown = [sign for sign in unseen if not redactor.redact_text(f"{start}{sign}{end}").found]
    assert shown == []


@each("form", DUMPS)
@each("before", [0, 5, 13])
def test_a_dump_is_read_across_its_lines(redactor: Redactor, before: int, form: str) -> None:
    for name in ("TOKEN", "PHRASE", "PLAIN", "UMLAUT"):
        data = b"x" * before + VALUES[name].encode() + b"y" * (-(before + len(VALUES[name].encode())) % 16)
        rows = [data[at : at + 16] for at in range(0, len(data), 16)]
        text = "\n".join(
            f"{at * 16:07x}{DUMPS[form](row)}" for at, row in enumerate([b"z" * 16, *rows, b"z" * 16])
        )
        done = redactor.redact_text(text)
        assert done.found == (name,), text
        kept = done.value.split("\n")
        assert kept[0] == text.split("\n")[0] and kept[-1] == text.split("\n")[-1]
        assert len(kept) == 3, "what lies between is masked, with the column that shows it as text"


@each("form", [form for form in DUMPS if form.startswith("od") and form != "od -t x1z"])
@each("before", [0, 5, 13])
def test_a_dump_without_offsets_is_read_too(redactor: Redactor, before: int, form: str) -> None:
    for name in ("TOKEN", "PHRASE", "PLAIN", "UMLAUT"):
        data = b"x" * before + VALUES[name].encode() + b"y" * (-(before + len(VALUES[name].encode())) % 16)
        rows = [DUMPS[form](data[at : at + 16]) for at in range(0, len(data), 16)]
        for text in ("\n".join(rows), "\n".join(["before", *rows, "after"])):
            assert redactor.redact_text(text).found == (name,), text
            assert not any(row.strip() in redactor.redact_json(text).value for row in rows)


@each("size", [2, 4, 8])
@each("more", range(9))
def test_a_short_word_at_the_end_of_a_dump_is_read_too(redactor: Redactor, more: int, size: int) -> None:
    data = b"x" * more + VALUES["TOKEN"].encode()
    rows = [data[at : at + 16] for at in range(0, len(data), 16)]
    lines = []
    for at, row in enumerate(rows):
        words = [row[n : n + size][::-1].hex().rjust(2 * size) for n in range(0, len(row), size)]
        lines.append(f"{at * 16:08x}: {' '.join(words):<{32 + 16 // size}} {row.decode()}")
    assert redactor.redact_text("\n".join(lines)).value == "[secret TOKEN]"


def test_a_column_of_text_that_looks_like_its_own_edge_hides_no_bytes(redactor: Redactor) -> None:
    data = b"see  |: " + VALUES["TOKEN"].encode()
    rows = [data[at : at + 16] for at in range(0, len(data), 16)]
    text = "\n".join(f"{at * 16:08x}{DUMPS['hexdump -C'](row)}" for at, row in enumerate(rows))
    assert redactor.redact_text(text).found == ("TOKEN",)


WORDS = {
    "%02x": 256,
    "%04x": 65_536,
    "%08x": 2**32,
    "%08d": 2,
    "%03o": 256,
    "%06o": 65_536,
    "%d": 256,
    "%5d": 65_536,
    "%s": 1,
}


@given(st.data())
@examples(200)
def test_lines_are_read_at_once_as_one_by_one(data: st.DataObject) -> None:
    """What lines stand for together is what they stand for one by one, and each byte is placed in its line."""
    rows = st.tuples(
        st.sampled_from(sorted(WORDS)), st.lists(st.integers(0, 2**32 - 1), min_size=4, max_size=9)
    )
    lines: list[str] = []
    for shape, numbers in data.draw(st.lists(rows, min_size=1, max_size=8)):
        words = [
            shape % (number % WORDS[shape] if shape != "%s" else "az.-"[number % 4]) for number in numbers
        ]
        lines += ["  ".join(words)] * data.draw(st.integers(1, 3))
    text = "\n".join(lines).encode()
    for dump in dumps_in(text):
        at = 0
        for body, place in zip(dump.bodies, dump.places, strict=True):
            read = dump.format.read(body)
            assert text[slice(*place)].endswith(body) and dump.data[at : at + len(read)] == read
            assert dump.place(at, at + len(read)) == place
            at += len(read)
        assert at == len(dump.data)


def test_base64_of_utf_16_in_either_order(redactor: Redactor) -> None:
    for encoding in ("utf-16-le", "utf-16-be", "utf-16"):
        written = base64.b64encode(VALUES["PLAIN"].encode(encoding)).decode()
        assert redactor.redact_text(f"a {written} b").found == ("PLAIN",)


@each("encode", [base64.b64encode, base64.urlsafe_b64encode, base64.encodebytes])
@each("before", range(7))
def test_base64_at_every_offset(redactor: Redactor, before: int, encode: Callable[[bytes], bytes]) -> None:
    for name, value in VALUES.items():
        written = encode(b"x" * before * 11 + value.encode() + b"y" * before).decode()
        done = redactor.redact_text(written)
        assert done.found == (name,), (name, written)


@pytest.mark.parametrize("before", range(5))
def test_base32_at_every_offset(redactor: Redactor, before: int) -> None:
    for name in ("TOKEN", "PLAIN"):
        written = base64.b32encode(b"x" * before + VALUES[name].encode() + b"yy").decode()
        assert redactor.redact_text(written).found == (name,)


def test_white_space_around_a_value_is_no_part_of_it() -> None:
    redactor = Redactor({"A": " p4ss-w\n", "B": "Zk3vQ9xW2mL7pR4t\r\n"})
    assert redactor.redact_text("p4ss-w and Zk3vQ9xW2mL7pR4t").value == "[secret A] and [secret B]"


def test_every_line_of_a_key_is_a_secret_too() -> None:
    lines = ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj", "AgEAAoIBAQC7VJTUt9Us8cKjMzEfYyjiWA4R4/M2bS"]
    key = "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"])
    redactor = Redactor({"KEY": key}, patterns=())
    assert redactor.redact_text(key).value == "[secret KEY]"
    assert redactor.redact_text(json.dumps({"key": key})).value == '{"key": "[secret KEY]"}'
    assert redactor.redact_text(f"tail: {lines[1]} end").value == "tail: [secret KEY] end"
    assert redactor.redact_text("-----BEGIN PRIVATE KEY-----").found == ()


@pytest.mark.parametrize(
    "text",
    [
        "The battery of the horse was correct.",
        "hunt 2 nt r and h2 nt&r",
        json.dumps({"path": "C:\\new\\table", "re": "\\d+%20"}),
        "".join(f"{n:08x} " for n in range(4000)),
        "qx7 z9 QX7-Z9",  # a short value only as it is
        "😀 \ud800 \x00 \x1b[0m",
    ],
)
def test_ordinary_text_is_left_as_it_is(redactor: Redactor, text: str) -> None:
    done = redactor.redact_text(text)
    assert (done.value, done.found, done.note) == (text, (), "")


def test_the_mark_names_the_secret_and_the_note_tells_the_model(redactor: Redactor) -> None:
    done = redactor.redact_text(f"{VALUES['PLAIN']}{VALUES['PHRASE']} {VALUES['PLAIN']}")
    assert done.value == "[secret PLAIN][secret PHRASE] [secret PLAIN]"
    assert done.note == "Masked in this output, because it is secret: PLAIN, PHRASE."
    assert redactor.redact_text(done.value).value == done.value


def test_json_is_masked_at_any_depth_keys_and_numbers_too(redactor: Redactor) -> None:
    value: Any = {
        "a": [1, {VALUES["PLAIN"]: ("x", VALUES["SHORT"])}],
        VALUES["PLAIN"]: None,
        "pin": 83920174,
        "n": 7,
    }
    given_ = json.dumps(value)
    done = redactor.redact_json(value)
    assert done.value == {
        "a": [1, {"[secret PLAIN]": ["x", "[secret SHORT]"]}],
        "[secret PLAIN]": None,
        "pin": "[secret PIN]",
        "n": 7,
    }
    assert list(done.value) == ["a", "[secret PLAIN]", "pin", "n"]
    assert set(done.found) == {"PLAIN", "SHORT", "PIN"}
    assert json.dumps(value) == given_


def test_json_of_any_depth_and_keys_that_become_equal(redactor: Redactor) -> None:
    deep: Any = VALUES["PLAIN"]
    for _ in range(5000):
        deep = [deep]
    assert redactor.redact_json(deep).found == ("PLAIN",)
    twice = {VALUES["PLAIN"]: 1, VALUES["PLAIN"].upper(): 2}
    assert list(redactor.redact_json(twice).value.values()) == [1, 2]


@pytest.mark.parametrize("value", ["", "1234", "      ", "xxxxxxxx", "äö"])
def test_what_could_not_be_masked_is_refused_with_the_reason(value: str) -> None:
    with pytest.raises(UnfitSecret, match="secret 'PIN' cannot be used: it is"):
        Redactor({"PIN": value})


def test_a_value_that_its_mark_would_show_is_unfit() -> None:
    assert why_unusable("Password", "my_password") == "it is part of its own name, which is shown"
    assert why_unusable("Password", "other") is None


def test_a_redactor_shows_no_value(redactor: Redactor) -> None:
    shown = repr(redactor) + str(redactor)
    assert not any(value in shown for value in VALUES.values())


def test_nothing_known_masks_nothing_but_key_formats() -> None:
    assert Redactor({}, patterns=()).redact_text("anything").value == "anything"
    key = "AKIA" + "Q" * 16
    assert Redactor({}).redact_text(f"id={key}").value == "id=[secret AWS access key]"


def test_what_is_said_not_to_be_covered_is_not() -> None:
    """The page that says so would have to be changed."""
    value = VALUES["PLAIN"]
    redactor = Redactor({"PLAIN": value}, patterns=())
    turned = value.translate(str.maketrans("abcdefghijklmnopqrstuvwxyz", "nopqrstuvwxyzabcdefghijklm"))
    for text in (
        turned,
        bytes(b ^ 1 for b in value.encode()).decode(),
        base64.b85encode(value.encode()).decode(),
    ):
        assert redactor.redact_text(text).found == ()


# -- streams


def pieces(text: str, sizes: list[int]) -> list[str]:
    out, at = [], 0
    for size in sizes:
        out.append(text[at : at + size])
        at += size
    return [*out, text[at:]]


def streamed(redactor: Redactor, parts: list[str]) -> str:
    stream = redactor.stream()
    return "".join([*(stream.feed(part) for part in parts), stream.finish()])


NOISE = st.text(alphabet="abz09 \n\t\\%&;\"'/+-_xu=é\x1b[m\x00", max_size=30)
WRITTEN = st.sampled_from(
    [form(value) for form in [*FORMS.values(), *LONG_FORMS.values()] for value in list(VALUES.values())[:4]]
    + [form(value) for form in FORMS.values() for value in VALUES.values()]
    + [
        base64.encodebytes(b"q" * n + value.encode() + b"r").decode()
        for value in VALUES.values()
        for n in (0, 1, 50)
    ]
)
TEXTS = st.lists(st.one_of(NOISE, WRITTEN, WRITTEN.map(lambda text: text[: len(text) // 2])), max_size=6).map(
    "".join
)
SIZES = st.lists(st.integers(0, 40), max_size=60)


@examples(300)
@given(TEXTS, SIZES, st.booleans())
@example(VALUES["PLAIN"], [1] * 30, False)
@example(json.dumps(list(VALUES["UMLAUT"] + "\U0001f600")), [2] * 60, False)
@example("\x1b[" + "".join(f"\\x{code:02x}" for code in VALUES["PHRASE"].encode()), [], False)
@example(
    "00000000000000073 6b 2d 6c 69 76 65 2d 39 66 38 41 2f 37 2b 7a 22 51 26 3d 78 78 20 59 27 77"
    "73 6b 2d 6c 69 76 65 2d 39 66 38 41 2f 37 2b 7a 22 51 26 3d 78 78 20 59 27 77",
    [3],
    False,
)
def test_pieces_give_what_the_whole_gives(text: str, sizes: list[int], automaton: bool) -> None:
    redactor = REDACTORS[automaton]
    made = streamed(redactor, pieces(text, sizes))
    if made != redactor.redact_text(text).value:
        # Of a dump whole lines are masked, of which the beginning may have been given before, and the end of what came
        # may look like a dump.
        left = iter(text)
        assert not redactor.redact_text(made).found
        assert all(char in left for char in re.sub(r"\[secret \w+\]", "", made))
        assert next(dumps_in(text.encode()), None) is not None or re.search(r"([0-9a-f]{2,4} ){4}", text)


@examples(200)
@given(TEXTS)
def test_both_ways_of_looking_find_the_same(text: str) -> None:
    assert REDACTORS[False].redact_text(text) == REDACTORS[True].redact_text(text)


REDACTORS = [Redactor(VALUES, patterns=(), automaton=False), Redactor(VALUES, patterns=())]


DUMPED = st.sampled_from(
    [
        f"0000000{show(VALUES[name].encode()[:16])}"
        for show in DUMPS.values()
        for name in ("TOKEN", "PLAIN", "PIN")
    ]
)
TOKENS = st.sampled_from(
    ["AKIA" + "IOSFODNN7EXAMPLE", 'password: "', "ghp_" + "a1B2" * 9, "Zk3vQ9xW2", "83920174"]
)
PLAIN_TEXTS = st.text(alphabet="ab0 %,:", max_size=6)
LEAVES = st.one_of(
    PLAIN_TEXTS, PLAIN_TEXTS, st.integers(), st.just(83920174), st.floats(allow_nan=False, allow_infinity=False), TEXTS,
    DUMPED, TOKENS, st.tuples(PLAIN_TEXTS, DUMPED).map("".join),
)  # fmt: skip
DATA = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PLAIN_TEXTS | TOKENS, inner, max_size=3),
)


@examples(500)
@given(DATA, st.booleans())
def test_json_in_which_nothing_is_found_at_once_holds_no_secret(data: Any, automaton: bool) -> None:
    redactor, text = REDACTORS[automaton], to_json(data).decode()
    if redactor.finds_nothing(text):
        assert redactor.redact_text(text).found == ()
        assert redactor.redact_json(data).found == (), text


@each(
    "text",
    ["", "all is well\n  indeed", '{"city":"Rio de Janeiro, BR","days":7,"tags":[1.5,null]}', "größer"],
)
def test_in_plain_text_nothing_is_found_at_once(redactor: Redactor, text: str) -> None:
    assert redactor.finds_nothing(text)


def test_what_cannot_be_a_secret_is_given_at_once() -> None:
    stream = REDACTORS[0].stream()
    assert stream.feed("Building 12 of 40 …\n") == "Building 12 of 40 …\n"
    assert stream.feed("got Zk3v") == "got "
    assert stream.feed("Q9xW2mL7pR4t") == "[secret PLAIN]"
    assert stream.found == ("PLAIN",)
    assert stream.feed(" and no more") + stream.finish() == " and no more"


def test_bytes_stream_as_they_are() -> None:
    stream = REDACTORS[0].stream()
    out = [stream.feed_bytes(part) for part in (b"\xff\xfe Zk3vQ9x", b"W2mL7pR4t \xe2\x82", b"\xac")]
    assert b"".join([*out, stream.finish_bytes()]) == b"\xff\xfe [secret PLAIN] \xe2\x82\xac"


@pytest.mark.parametrize("filler", ["Zk3vQ9xW2mL7pR4", "Z", " ", "\\u005a", "%5a", "Zk3vQ9xW2mL7pR4t"])
def test_a_stream_that_nearly_is_a_secret_holds_little_and_ends(filler: str) -> None:
    stream = REDACTORS[0].stream()
    given_ = 0
    for _ in range(20_000):
        given_ += len(stream.feed(filler))
    assert given_ > 0
    rest = stream.finish()
    assert len(rest) < 20_000
    assert VALUES["PLAIN"] not in rest


def test_random_texts_do_not_leak_in_random_pieces() -> None:
    chance = random.Random(7)
    redactor = REDACTORS[0]
    for name, value in VALUES.items():
        for form in FORMS.values():
            written = form(value)
            text = f"{chance.randbytes(20).hex()} {written} {chance.randbytes(9).hex()}"
            sizes = [chance.randint(1, 9) for _ in range(len(text) // 5)]
            assert written not in streamed(redactor, pieces(text, sizes)), name


def test_quoted_printable_line_breaks_do_not_hide_a_value() -> None:
    value = VALUES["PLAIN"]
    written = quopri.encodestring(b"x" * 66 + value.encode() + b"y" * 9).decode()
    assert value not in written
    assert REDACTORS[0].redact_text(written).found == ("PLAIN",)

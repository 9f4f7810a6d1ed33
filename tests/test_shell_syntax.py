"""Characters of all scripts in a command line: the parser must not die of any, and reads each as an ordinary letter."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from toolcrib.command.judge import judge
from toolcrib.command.judge.find_commands import find_commands
from toolcrib.command.judge.syntax import stand_in, tree_of, unparsed_scripts

POSITIONS = [
    "echo {X..9}", "echo {1..X}", "echo {1..9..X}", "echo {X,9}", "echo X", "X", "X=1 ls", "ls X=1", "$X",
    "echo ${X}", "echo ${X:-1}", "echo ${a[X]}", 'echo "$X"', "echo $'X'", "echo $((X))", "echo 2>X", "X>a",
    "X<<<a", "cat <<X\nX\nX", "cat <<'X'\na\nX", "for X in a; do ls $X; done", "for i in X; do ls $i; done",
    "[ -f X ]", "[[ a =~ X ]]", "X()", "(X)", "{ X; }", "`X`", "$(X)", "case X in X) ls;; esac", "ls #X", "ls X#",
    "X\\X", "\\X", "a[X]=1", "ls *X", "ls [X]", "ls @(X)", "let X", "~X", "!X", "&X", "|X", "X|X", "X&", "<(X)",
    "-X", "--X=X", "XX", "X.X", "1X", "X1", "echo {1X..9}", "echo {X", "=X",
]  # fmt: skip
# Of one to four bytes, with and without a shape: letters, digits, spaces, private, unassigned, the last there is.
SIGNS = "\x01\xa0é²ÿĀßжא٣߀ऄ\u1680 \u2028\u200b０字\ufeff\ue000\uffff𝟗😀\U000e0041\U0010fffd\U0010ffff"
CHILD = """
import itertools, sys
from toolcrib.command.judge import judge
from toolcrib.command.judge.syntax import tree_of
from toolcrib.tools.syntax_check import newly_broken
positions, signs = eval(sys.stdin.read())
broken = [newly_broken("a.sh", "", text.replace("X", sign)) for text, sign in itertools.product(positions, signs)]
found = [judge(text.replace("X", sign)).verdict for text, sign in itertools.product(positions, signs)]
for code in range(0x100, 0x110000, 499):
    if not 0xD800 <= code < 0xE000:
        tree_of("echo {" + chr(code) + "..9}")
        tree_of("echo {1.." + chr(code) + "} $" + chr(code))
print(len(found))
"""


@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_no_character_ends_the_process(locale: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", CHILD],
        input=repr((POSITIONS, SIGNS)),
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "LC_ALL": locale},
        timeout=120,
    )
    assert (done.returncode, done.stdout.strip()) == (0, str(len(POSITIONS) * len(SIGNS))), done.stderr


@pytest.mark.parametrize("text", POSITIONS)
def test_what_has_a_shape_is_judged_as_a_letter(text: str) -> None:
    def judged(sign: str) -> tuple[object, ...]:
        found = judge(text.replace("X", sign))
        return found.verdict, found.reason.replace(sign, "X"), str(found.plan).replace(sign, "X")

    for sign in "ßж字０😀🎉":
        assert judged(sign) == judged("é")


@pytest.mark.parametrize(
    "text",
    ["echo 字 é ж 😀", "cat <<字\n文\nrm -rf /\n字", "a\u3000b", "é" * 40 + "ж", "\ufeffls", *POSITIONS],
)
def test_the_parser_gets_the_same_bytes_without_their_characters(text: str) -> None:
    text = text.replace("X", "字")
    given = stand_in(text)
    assert max(given) <= "\xff" and len(given.encode()) == len(text.encode())
    kept = [(sign, len(text[:at].encode())) for at, sign in enumerate(text) if sign <= "\xff"]
    assert all(given.encode()[at:].startswith(sign.encode()) for sign, at in kept)


def test_the_text_that_is_judged_is_the_real_one() -> None:
    assert tree_of("echo 字😀").children[0].text == "echo 字😀"
    assert [operand.path for operand in judge("cat 字😀").operands] == ["字😀"]


def test_a_here_document_ends_where_bash_ends_it() -> None:
    """What hides behind a line that only looks like the end, to a parser that takes one character for another."""
    hidden = "bash <<字\n'\n文\n'; rm -rf /; '\n字\n"
    assert judge(hidden).verdict == "deny"
    assert judge("cat <<字\n'\n字\nrm -rf / #'").verdict == "deny"


def test_unusual_spaces_still_part_words_where_harm_is_looked_for() -> None:
    assert judge("rm\u3000-rf\u3000/").verdict == "deny"


def test_a_here_document_that_begins_with_a_backslash_is_no_argument() -> None:
    (latex,) = find_commands("pdflatex <<'E'\n\\documentclass{a} # x\nE", guess=False)
    assert (latex.argv, latex.given) == (["pdflatex"], "\\documentclass{a} # x\n")


NESTED = [
    "`a \\\\ $(",
    "`a \\$x $(",
    "${a:-`b \\\\ $(",
    "a && (",
    "$(a ",
    "<(`a \\\\ ",
    "`a \\`",
    "a=(b ",
    "[[ a =~ (",
    "cat <<a\n\\x\na\n",
]


@pytest.mark.parametrize("opening", NESTED)
def test_no_text_keeps_the_judge_busy(opening: str) -> None:
    """Its time is no power of the depth of substitutions, and no depth is too great for it."""
    closing = "".join({"`": "`", "(": ")", "{": "}"}.get(sign, "") for sign in reversed(opening))
    for count in (16, 100, 600):
        text = (opening * count + "x" + closing * count)[:9_900]
        begun = time.process_time()
        judge(text)
        find_commands(text)
        assert time.process_time() - begun < 2, count


def test_what_the_parser_does_not_read_is_given_once() -> None:
    text = "a `b \\`c\\`` ${d:-`e`} \"${f#`g`}\" `h` '`i`' <<E\n`j` \\`k\\`\nE\n# `l`"
    assert sorted(unparsed_scripts(tree_of(text))) == ["b `c`", "e", "g", "j"]

"""Parses the text of a command into a plan, or says why it has none.

tree-sitter-bash says where words begin and end and what they are made of; how the words belong together is
read again from their order, because its tree binds redirections to lists and takes words after a redirection
for a part of it. Each byte must belong to a token or be blank, tokens must be spelled as their kind says, and
words must not touch: a shell would read one where the tree shows two.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from toolcrib.command.judge.braces import expanded
from toolcrib.command.judge.conditions import extended_test
from toolcrib.command.judge.grammar import MAX_COMMANDS, read_plan
from toolcrib.command.judge.screen import screen
from toolcrib.command.judge.syntax import Node, tree_of
from toolcrib.command.judge.tokens import Token, Tokens, here_document, line_end
from toolcrib.command.judge.variables import may_be_assigned
from toolcrib.command.judge.words import BARE, NONE, UNEXPANDED, Variables, bare_word, decode
from toolcrib.command.not_proved import NotProved
from toolcrib.command.plan import (
    ANY_LINE,
    Compound,
    CompoundKind,
    Glob,
    Pipeline,
    Plan,
    Step,
    Substitution,
    Word,
    commands,
)
from toolcrib.dataclass import replace

MAX_DEPTH = 40  # levels of a tree; deeper is not reviewed by anybody

CONTAINERS = {
    "program", "list", "pipeline", "command", "command_name", "redirected_statement", "subshell",
    "negated_command", "file_redirect", "herestring_redirect", "heredoc_redirect",
}  # fmt: skip
WORDS = BARE | {
    "raw_string",
    "string",
    "ansi_c_string",
    "command_substitution",
    "concatenation",
    "process_substitution",
    "brace_expression",
}
OPERATORS = {"&&", "||", ";", "|", "|&", "(", ")", "!"}
REDIRECTIONS = {"<", ">", ">>", "&>", "&>>", ">&", "<&", "<&-", ">&-", "<<<", "<<", "<<-"}
UNKNOWN_OPERATORS = {
    "&": "a command in the background (&)",
    ">|": "a redirection with >|",
    "<>": "a redirection with <>",
}
STATEMENTS = {
    "c_style_for_statement": "a loop", "case_statement": "a case statement", "function_definition": "a function",
    "test_command": "a [ ] or [[ ]] test of several conditions",
    "declaration_command": "a declaration", "unset_command": "unset", "variable_assignments": "assignments",
    "variable_assignment": "an assignment",
}  # fmt: skip
DELIMITER = re.compile(r"'([A-Za-z0-9_.-]+)'|\"([A-Za-z0-9_.-]+)\"|([A-Za-z0-9_.-]+)")
TEST = re.compile(r"\[ +([^\n`]+?) +\]")
EXTENDED_TEST = re.compile(r"\[\[ +([^\n`]+?) +\]\]")
# Statements whose parts begin with these keywords, and the nodes of the tree that hold some of the parts.
COMPOUNDS = {
    "if_statement": re.compile(r"if then (?:elif then )*(?:else )?fi"),
    "while_statement": re.compile(r"(?:while|until) do done"),
    "compound_statement": re.compile(r"\{ \}"),
}
READS_LINES = re.compile(r"[ \t\n]+((?:IFS= +)?read(?: +-r)?) +([A-Za-z_][A-Za-z0-9_]*) *[;\n][ \t\n]*")
COMPOUND_KINDS: dict[str, CompoundKind] = {"if": "if", "while": "while", "until": "until"}
CLAUSES = {"elif_clause", "else_clause", "do_group"}
KEYWORDS = {"if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "}"}
MAX_ROUNDS = 20
MAX_LOOPS = 2  # inside of each other
MAX_INSIDE = 10
MAX_VALUE = 10_000  # characters that a variable stands for: `b=$a$a; c=$b$b; …` would fill all memory
ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
# {kind of a node that sets a variable: which of its parts is the name}
SETS_VARIABLES = {"variable_assignment": 0, "for_statement": 1}


def parse(text: str, *, run_by_us: bool = True) -> Plan:
    """The plan of a command line. Raises NotProved, with the reason, if any part has more than one reading.

    Without `run_by_us` a shell will run it and not the plan. Then brace expansions, which not every shell has, and
    loops over patterns, whose names a shell may split, have none, nor has what only some shells understand.
    """
    screen(text)
    root = tree_of(text)
    plan = _Reader(text.encode(), run_by_us=run_by_us).plan(root)
    if sum(1 for _ in commands(plan)) > MAX_COMMANDS:
        raise NotProved(f"more than {MAX_COMMANDS} commands")
    return plan


class _Reader:
    """Collects the tokens of one command line. `raw` is its text as bytes; nodes of the tree are offsets in it."""

    __slots__ = ("inside", "loops", "raw", "run_by_us", "tokens", "variables")

    def __init__(
        self,
        raw: bytes,
        variables: Variables = NONE,
        inside: int = 0,
        loops: tuple[str, ...] = (),
        *,
        run_by_us: bool,
    ) -> None:
        if inside > MAX_INSIDE:
            raise NotProved("nested too deep")
        self.raw = raw
        self.run_by_us = run_by_us
        self.inside = inside  # of how many loops and substitutions
        self.loops = loops  # the variables of those that it is inside of
        self.variables = dict(variables)  # known so far, in the order of the text
        self.tokens = Tokens(raw)

    def plan(self, root: Node) -> Plan:
        if root.has_error:
            raise NotProved("it cannot be parsed")
        self._walk(root, 0)
        return read_plan(self.tokens.in_order(0, len(self.raw)))

    def _inner(self, node: Node) -> Plan:
        """The plan of what stands inside `$( … )`, `<( … )` or backticks, by the same rules."""
        reader = self._nested()
        if len(node.children) < 3 or (node.children[0].kind, node.children[-1].kind) not in (
            ("$(", ")"),
            ("`", "`"),
            ("<(", ")"),
        ):
            raise NotProved("an odd substitution")
        opening, closing = node.children[0], node.children[-1]
        for child in node.children[1:-1]:
            reader._node(child, 1)
        if reader.tokens.skipped:
            raise NotProved("a here-document in a substitution")
        return read_plan(reader.tokens.in_order(opening.end, closing.start))

    def _nested(self, variables: Variables = NONE) -> _Reader:
        """A reader of what stands inside of a statement or a substitution."""
        known = {**self.variables, **variables}
        loops = (*self.loops, *variables)
        return _Reader(self.raw, known, self.inside + 1, loops, run_by_us=self.run_by_us)

    def _forget(self, node: Node) -> None:
        """Forget what a statement may set: in its parts, in its next round, and after it, the value is not known."""
        for name in _set_in(node):
            self.variables.pop(name, None)

    def _walk(self, node: Node, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise NotProved("nested too deep")
        for child in node.children:
            self._node(child, depth)

    def _node(self, node: Node, depth: int) -> None:
        kind = node.kind
        if node.is_missing or kind == "ERROR":
            raise NotProved("it cannot be parsed")
        if not node.is_named:
            self._sign(node)
        elif kind == "comment":
            self._comment(node)
        elif kind == "heredoc_redirect":
            self._heredoc(node, depth)
        elif kind == "command":
            self._command(node, depth)
        elif kind in CONTAINERS:
            self._walk(node, depth + 1)
        elif kind == "file_descriptor":
            self.tokens.add("fd", node, node.text)
        elif kind == "variable_assignment" and self.run_by_us:
            self._set(node)
        elif kind in WORDS or kind in ("simple_expansion", "expansion"):
            words = self._words(node)
            sign = "$" if node.text.startswith("$") else ""
            if words:
                self.tokens.add("word", node, sign, words[0], more=tuple(words[1:]))
            else:
                raise NotProved("a brace expansion to nothing")
        elif kind == "for_statement":
            self._loop(node, depth)
        elif kind in COMPOUNDS:
            self._compound(node, depth)
        elif kind == "test_command" and (test := TEST.fullmatch(node.text)):
            self._test(node, test)
        elif kind == "test_command" and self.run_by_us and (test := EXTENDED_TEST.fullmatch(node.text)):
            self._extended_test(node, test)
        else:
            raise NotProved(STATEMENTS.get(kind) or UNEXPANDED.get(kind) or kind.replace("_", " "))

    def _words(self, node: Node) -> list[Word]:
        """The word that a node stands for, or the words of a brace expansion."""
        texts = expanded(node.text) if self.run_by_us else None
        if texts is None:
            return [decode(node, self._inner, self.variables)]
        return [bare_word(text) for text in texts]

    def _sign(self, node: Node) -> None:
        spelled = node.text
        if spelled in UNKNOWN_OPERATORS:
            raise NotProved(UNKNOWN_OPERATORS[spelled])
        # Seen: an anonymous token `<<` whose text was `-l<<`.
        if spelled != node.kind:
            raise NotProved(f"an odd token {spelled[:20]!r}")
        if spelled == "\n":
            return  # newlines are found again between tokens
        if spelled in OPERATORS:
            self.tokens.add("op", node, spelled)
        elif spelled in REDIRECTIONS:
            self.tokens.add("redirect", node, spelled)
        else:
            raise NotProved(f"the operator {spelled[:20]}")

    def _comment(self, node: Node) -> None:
        before = self.raw[: node.start]
        if before and before[-1:] not in b" \t\n;&|(":
            raise NotProved("a # inside a word")
        self.tokens.skipped.append((node.start, node.end))  # skipped like a body

    def _command(self, node: Node, depth: int) -> None:
        """Words, redirections, and before them the variables of this command alone."""
        if depth >= MAX_DEPTH:
            raise NotProved("nested too deep")
        for child in node.children:
            if child.kind == "variable_assignment":
                name, word = self._assigned(child)
                if word.literal is None:
                    raise NotProved("an assignment whose value is not plain")
                self.tokens.add("assign", child, name, word)
            else:
                self._node(child, depth + 1)

    def _set(self, node: Node) -> None:
        """An assignment that stands alone: what follows knows the value, or which command has printed it."""
        name, word = self._assigned(node)
        if not may_be_assigned(name) or name in self.loops:
            raise NotProved(f"an assignment to {name}")
        if (value := word.literal) is not None:
            if len(value) > MAX_VALUE:
                raise NotProved("a variable with a long value")
            self.variables[name] = value
        elif len(word.parts) == 1 and isinstance(part := word.parts[0], Substitution) and not part.piped:
            self.variables[name] = replace(part, variable=name)
        else:
            raise NotProved("an assignment whose value is not plain")
        group = Compound("set", (), (), name, word)
        self.tokens.add("set", node, word=word, group=group)

    def _assigned(self, node: Node) -> tuple[str, Word]:
        """The name and the value of an assignment."""
        value = node.field("value")
        named = ASSIGNED.match(node.text)
        start = node.start + (named.end() if named else 0)
        if named is None or (value.start if value else node.end) != start:
            raise NotProved("an odd assignment")
        if value is not None and value.end != node.end:
            raise NotProved("an odd assignment")
        word = decode(value, self._inner, self.variables) if value is not None else Word(())
        if "~" in node.text:
            raise NotProved("an assignment whose value is not plain")
        return named[1], word

    def _loop(self, node: Node, depth: int) -> None:
        """A loop over known words becomes a group with its body repeated, once for each word or pattern."""
        name = node.field("variable")
        body = node.field("body")
        values: list[Word] = []
        written = node.all_of("value")
        for child in written:
            try:
                values += self._words(child)
            except NotProved as stopped:
                raise NotProved(f"a loop over {stopped.reason}") from None
        rest = [child.kind for child in node.children if child not in (name, body)]
        heads = ["for", "in", ";", "\n"]
        if name is None or body is None or body.kind != "do_group" or not may_be_assigned(name.text):
            raise NotProved("a loop")
        if written and b"\n" in node.raw[node.start : written[0].start]:
            raise NotProved("a loop whose first words stand on several lines")
        if name.text in self.loops:  # after the inner loop, the variable holds its last value
            raise NotProved("a loop inside a loop over the same variable")
        known = all(value.literal is not None or (self.run_by_us and _is_pattern(value)) for value in values)
        known = known or (self.run_by_us and len(values) == 1 and _is_printed(values[0]))
        if not known or not 0 < len(values) <= MAX_ROUNDS or len(rest) - len(written) > 3:
            raise NotProved("a loop over what is only known when it runs")
        if len(self.loops) >= MAX_LOOPS:
            raise NotProved("nested too deep")
        self._forget(node)
        if [kind for kind in rest if kind in heads][:2] != ["for", "in"] or not self._children_cover(node):
            raise NotProved("a loop")
        start, end = body.children[0].end, body.children[-1].start
        steps: list[Step] = []
        for value in values:
            inner = self._nested({name.text: _in_loop(value, name.text)})
            for child in body.children[1:-1]:
                inner._node(child, depth + 1)
            if inner.tokens.skipped:
                raise NotProved("a loop with a here-document or a comment in it")
            round_ = read_plan(inner.tokens.in_order(start, end))
            if value.literal is None:
                over = Compound("for", (round_,), (), name.text, value)
                round_ = Plan((Step(";", Pipeline((over,))),))
            steps += round_.steps
        plan = Plan(tuple(steps))
        if sum(1 for _ in commands(plan)) > MAX_COMMANDS or any(
            command.words[0].literal == "cd" for command in commands(plan)
        ):
            raise NotProved("a loop that is too long or changes its folder")
        group = Compound("group", (plan,))
        self.tokens.add("group", node, group=group)

    def _compound(self, node: Node, depth: int) -> None:
        """`if`, `while` and `until` with the plans of their parts, and `{ …; }`; no cd may be in them."""
        flat = [
            one for child in node.children for one in (child.children if child.kind in CLAUSES else [child])
        ]
        ats = [at for at, one in enumerate(flat) if not one.is_named and one.kind in KEYWORDS]
        words = [flat[at].text for at in ats]
        if not COMPOUNDS[node.kind].fullmatch(" ".join(words)):
            raise NotProved(f"an odd {words[0] if words else 'statement'}")
        if (ats[0], ats[-1]) != (0, len(flat) - 1) or (flat[0].start, flat[-1].end) != (node.start, node.end):
            raise NotProved(f"an odd {words[0]}")
        self._forget(node)
        head = self.raw[flat[0].end : flat[ats[1]].start].decode()
        if words == ["while", "do", "done"] and (reads := READS_LINES.fullmatch(head)):
            self._read_loop(node, reads, flat[ats[1]], flat[ats[1] + 1 : -1], depth)
            return
        plans = tuple(
            self._part(flat[here], flat[here + 1 : after], flat[after], depth)
            for here, after in itertools.pairwise(ats)
        )
        if any(command.words[0].literal == "cd" for plan in plans for command in commands(plan)):
            raise NotProved(f"a {words[0]} that changes its folder")
        first = words[0]
        group = Compound(COMPOUND_KINDS.get(first, "group"), plans)
        self.tokens.add("group", node, group=group)

    def _read_loop(
        self, node: Node, reads: re.Match[str], begin: Node, body: Sequence[Node], depth: int
    ) -> None:
        """`while read -r line; do …; done`, which has lines of its input in the variable."""
        how, name = " ".join(reads[1].split()), reads[2]
        if not self.run_by_us or not may_be_assigned(name) or name in self.loops:
            raise NotProved("a loop that reads into a variable")
        if len(self.loops) >= MAX_LOOPS:
            raise NotProved("nested too deep")
        line = Substitution(ANY_LINE, quoted=False, variable=name)
        plan = self._part(begin, body, node.children[-1].children[-1], depth, {name: line})
        if any(command.words[0].literal == "cd" for command in commands(plan)):
            raise NotProved("a loop that is too long or changes its folder")
        group = Compound("read", (plan,), variable=name, reads=how)
        self.tokens.add("group", node, group=group)

    def _part(
        self, begin: Node, inside: Sequence[Node], end: Node, depth: int, variables: Variables = NONE
    ) -> Plan:
        """The plan between two keywords: after the first stands a blank, before the second a `;` or newline."""
        inner = self._nested(variables)
        for child in inside:
            inner._node(child, depth + 1)
        if inner.tokens.skipped:
            raise NotProved("a statement with a here-document or a comment in it")
        tokens = inner.tokens.in_order(begin.end, end.start)
        separated = tokens and (
            tokens[-1].kind == "newline" or (tokens[-1].kind, tokens[-1].text) == ("op", ";")
        )
        if self.raw[begin.end : begin.end + 1] not in (b" ", b"\t", b"\n") or not separated:
            raise NotProved(f"an odd {begin.text}")
        return read_plan(tokens)

    def _children_cover(self, node: Node) -> bool:
        """Whether the children of a node cover its text except for blanks, with a blank between any two words."""
        for before, after in itertools.pairwise(node.children):
            gap = self.raw[before.end : after.start]
            touch = not gap and not {before.text, after.text} & {";", "\n"}
            if gap.strip(b" \t\n") or touch:
                return False
        return True

    def _test(self, node: Node, test: re.Match[str]) -> None:
        """`[ … ]` is read as the command `test …`, because the tree does not show its words reliably."""
        name, *words = self._tokens_of_test(test[1])
        if not all(token.kind == "word" for token in (name, *words)):
            raise NotProved("an odd test")
        shift = node.start + len(node.text[: test.start(1)].encode()) - len("test ")
        self.tokens.found.append(Token("word", node.start, node.start + 1, word=name.word))
        for token in words:
            self.tokens.found.append(replace(token, start=token.start + shift, end=token.end + shift))
        self.tokens.brackets.append((node.end - 1, node.end))

    def _tokens_of_test(self, inside: str) -> list[Token]:
        text = f"test {inside}"
        inner = _Reader(text.encode(), self.variables, self.inside, run_by_us=self.run_by_us)
        inner._walk(tree_of(text), 0)
        tokens = inner.tokens.in_order(0, len(inner.raw))
        if inner.tokens.skipped or inner.tokens.brackets:
            raise NotProved("an odd test")
        return tokens

    def _extended_test(self, node: Node, test: re.Match[str]) -> None:
        """`[[ … ]]` as the command `test …`, or as several that `&&` or `||` joins."""
        group = extended_test(f"test {test[1]}".encode(), self._tokens_of_test(test[1]))
        self.tokens.add("group", node, group=group)

    def _heredoc(self, node: Node, depth: int) -> None:
        """Reads a here-document: `<<'END'`, or `<<END` if a shell would expand nothing in its body."""
        at = len(self.tokens.found)
        start: Node | None = None
        for child in node.children:
            if child.kind == "heredoc_start":
                start = child
            elif child.kind not in ("heredoc_body", "heredoc_end"):
                self._node(child, depth + 1)
        if start is None or at == len(self.tokens.found) or self.tokens.found[at].text not in ("<<", "<<-"):
            raise NotProved("an odd here-document")
        if not (named := DELIMITER.fullmatch(start.text)):
            raise NotProved("an odd here-document")
        if self.tokens.skipped or b"<<" in self.raw[start.end : line_end(self.raw, start.end)]:
            raise NotProved("a here-document beside another or a comment")
        tabs = self.tokens.found[at].text == "<<-"
        body, end = here_document(self.raw, start.end, (named[1] or named[2] or named[3]).encode(), tabs=tabs)
        for child in node.children:
            if child.kind == "heredoc_body" and (child.start < body or child.end > end):
                raise NotProved("an odd here-document")
            if child.kind == "heredoc_end" and child.end != end:
                raise NotProved("an odd here-document")
        lines, newline, _ = self.raw[body:end].decode().rpartition("\n")
        text = lines + newline
        if named[3] and re.search(r"[$`\\]", text):
            raise NotProved("a here-document that the shell would expand (quote its delimiter)")
        if tabs:
            text = re.sub(r"(?m)^\t+", "", text)
        self.tokens.found.insert(
            at + 1, Token("word", start.start, start.end, word=Word((text,) if text else ()))
        )
        self.tokens.skipped.append((body, end))


def _set_in(node: Node) -> Iterator[str]:
    """The names of the variables that a statement may set."""
    if (at := SETS_VARIABLES.get(node.kind)) is not None and len(node.children) > at:
        yield node.children[at].text
    if node.kind == "command" and node.named_children and node.named_children[-1].kind != "command_name":
        words = [child.text for child in node.named_children]
        yield from words if "read" in words else ()
    for child in node.children:
        yield from _set_in(child)


def _is_pattern(word: Word) -> bool:
    """Whether a word is a pattern that a loop may go over."""
    return word.is_glob and not word.names_of_loops and not word.substitutions


def _is_printed(word: Word) -> bool:
    """Whether a word is `$( … )` without quotes, or a variable that holds what that printed."""
    return len(word.parts) == 1 and word.splits


def _in_loop(over: Word, name: str) -> str | Glob | Substitution:
    """What the variable of a loop stands for in the body of it."""
    if over.substitutions:
        return replace(over.substitutions[0], variable=name)
    return Glob(over.spelled) if over.is_glob else over.spelled

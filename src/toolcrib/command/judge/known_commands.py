"""Whether a command says which commands it runs, and what may be commands in the variables that it sets.

Rules that deny or ask take a command for any other one where it does not say so. What a file holds is not looked at:
a script runs whatever it likes, be it started by its name or by `bash run.sh`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from toolcrib.access import UNKNOWN_WORD
from toolcrib.command.judge.find_commands import UNKNOWN, FoundCommand, find_commands, word_of
from toolcrib.command.judge.inner_commands import (
    MAX_DEPTH,
    MAX_SEARCHED,
    PYTHON,
    Forms,
    Perhaps,
    found_in,
)
from toolcrib.command.judge.screen import screen
from toolcrib.command.judge.syntax import Node, below, joined_tree, unparsed_scripts
from toolcrib.command.not_proved import NotProved
from toolcrib.command.programs.launchers import SCRIPT, launches, starts_in, words_from
from toolcrib.command.programs.sed import SedScript, read_words
from toolcrib.command.programs.traits import known_name, script_of, traits_of

# Kinds of nodes that run no command but those that the parser finds in them.
UNDERSTOOD_KINDS = frozenset(
    [
        "arithmetic_expansion", "array", "binary_expression", "brace_expression", "c_style_for_statement", "case_item",
        "case_statement", "command", "command_name", "command_substitution", "comment", "compound_statement",
        "concatenation", "declaration_command", "do_group", "elif_clause", "else_clause", "expansion",
        "extglob_pattern", "file_descriptor", "file_redirect", "for_statement", "function_definition", "heredoc_body",
        "heredoc_content", "heredoc_end", "heredoc_redirect", "heredoc_start", "herestring_redirect", "if_statement",
        "list", "negated_command", "number", "parenthesized_expression", "pipeline", "postfix_expression",
        "process_substitution", "program", "raw_string", "redirected_statement", "regex", "simple_expansion",
        "special_variable_name", "string", "string_content", "subscript", "subshell", "ternary_expression",
        "test_command", "test_operator", "unary_expression", "unset_command", "variable_assignment",
        "variable_assignments", "variable_name", "while_statement", "word",
    ]
)  # fmt: skip
# Builtins with an option that makes a name stand for another program.
RENAMES = {"enable": "f", "hash": "p"}
# Variables that may add commands that their value does not show: files of commands, settings, options of interpreters.
ADDS_COMMANDS = re.compile(
    r"BASH_ENV|BASH_FUNC_.*|BASHOPTS|SHELLOPTS|GIT_CONFIG.*|(?:GNU)?MAKEFLAGS|PERL5(?:OPT|DB)|RUBYOPT|NODE_OPTIONS"
    r"|PYTHONBREAKPOINT|TAR_OPTIONS|ZIPOPT"
)
HARMLESS_VALUES = re.compile(
    r"--(?:max-old-space-size|openssl-legacy-provider|stack-trace-limit|no-same-owner)\b[=\d]*"
)
# Variables whose value is run as a command.
COMMAND_VARIABLES = re.compile(
    r"VISUAL|BROWSER|SHELL|LESSOPEN|LESSCLOSE|PS[0-4]|(?:.*_)?(?:ASKPASS|COMMAND|EDITOR|PAGER|SSH|DIFF)|MANPAGER"
)
DELIMITER = re.compile(r"(\\?)[\w.-]+|(['\"])[\w.-]+\2")
SUBSTITUTES = re.compile(r"\$\(|`")
READS_FILE = {".", "csh", "fish", "source", "tcsh"}
HARMLESS_OPTIONS = re.compile(r"-[eflnuvx]+|--(?:login|noprofile|norc|posix|verbose)")
FILE = re.compile(r"(?!-|/dev/|/proc/)[^<>(]+")
# Words of make that give it rules in another way than in a file.
GIVES_MAKE_RULES = re.compile(r"-|-E.*|--eval.*|-[a-z]*f-|--(?:make)?file=-|.*/dev/.*", re.DOTALL)
# Code that starts a program which it does not name: `system(x)`, `x | getline`.
STARTS_UNKNOWN = re.compile(
    r"\b(?:system|popen|passthru|shell_exec|execSync|execFile\w*|spawn(?:Sync)?)\s*\(\s*(?!q[qwx]?\W)[$@*A-Za-z_]"
    r"|(?:^|[;{])\s*(?:system|exec)(?:\s+|\s*\(\s*)[$@*]|[\w$\])]\s*\|&?\s*getline"
    r"|\bprintf?\b[^|;\n]*\|&?\s*(?:\$|\"(?:/\w+)*/?(?:ba|da|z|k)?sh\b)"
)
# Without arguments they start no program.
ALONE = {"!", "alias", "arch", "do", "else", "env", "exec", "nice", "then", "time", "trap", "{"}


def says_all(argv: Sequence[str], depth: int = 0) -> bool:
    """Whether the words of a command say which commands it launches."""
    if list(argv[1:]) in (["--version"], ["--help"]):
        return True
    if len(argv) > MAX_SEARCHED and launches(known_name(argv[0])):
        return False
    while launches(name := known_name(argv[0])):
        if _runs_file(name, argv) or (len(argv) == 1 and name in ALONE):
            return True
        if (script := script_of(list(argv))) is not None:
            return _script_says_all(script, depth)
        starts, certain = starts_in(argv)
        if not certain:
            return False
        if not starts:
            return True
        argv = words_from(argv, min(starts))
        if SCRIPT.search(argv[0]):
            return _script_says_all(argv[0], depth)
    if name == "sed":
        return _sed_says_all(read_words(argv), depth)
    if (option := RENAMES.get(name)) and any(word[:1] == "-" and option in word for word in argv[1:]):
        return False
    runs = traits_of(name).runs
    return name != UNKNOWN_WORD and (not runs or (runs == "code" and _code_says_all(name, argv)))


def _sed_says_all(script: SedScript, depth: int) -> bool:
    """Whether a sed script names every command that it runs."""
    return (
        script.understood
        and not script.runs_input
        and all(map(FILE.fullmatch, script.script_files))
        and UNKNOWN_WORD not in script.script_files
        and all(_script_says_all(command, depth) for command in script.runs)
    )


def _code_says_all(name: str, argv: Sequence[str]) -> bool:
    """Whether the code among the words of an interpreter names every program that it starts. True for Python,
    whose code is read where commands are looked for."""
    return PYTHON.fullmatch(name) is not None or not any(map(STARTS_UNKNOWN.search, argv[1:]))


def _runs_file(name: str, argv: Sequence[str]) -> bool:
    """Whether a shell or make runs what a file says, and nothing else."""
    if name == "make":
        return not any(word == UNKNOWN_WORD or GIVES_MAKE_RULES.fullmatch(word) for word in argv[1:])
    if name not in READS_FILE and traits_of(name).runs != "shell":
        return False
    operand = next((word for word in argv[1:] if not HARMLESS_OPTIONS.fullmatch(word)), "-")
    return operand != UNKNOWN_WORD and FILE.fullmatch(operand) is not None


def _script_says_all(script: str, depth: int) -> bool:
    if depth >= MAX_DEPTH or find_commands(script) != find_commands(script, guess=False):
        return False
    return text_says_all(script, depth + 1) and not any(commands_in_values(script))


def text_says_all(text: str, depth: int = 0) -> bool:
    """Whether a text says which commands a shell runs that reads as bash does."""
    try:
        screen(text)
        root, has_error = joined_tree(text)
    except NotProved:
        return False
    if has_error or not all(_is_understood(node) for node in below(root)):
        return False
    if not all(variable_says_all(name, value) for name, value in _assigned(root)):
        return False
    if not all(text_says_all(script, depth) for script in unparsed_scripts(root)):
        return False
    return all(_is_known(one, depth) for one in find_commands(text, guess=False) if one.argv)


def _is_understood(node: Node) -> bool:
    """Whether a shell finds the commands in a node that the parser found, which takes `<<E; x` to end at `E;`."""
    if node.kind == "heredoc_redirect":
        parts = {child.kind: child.text for child in node.named_children}
        start, end = parts.get("heredoc_start", ""), parts.get("heredoc_end", "")
        return DELIMITER.fullmatch(start) is not None and end.strip("\t") == start.strip("\\'\"")
    return not node.is_named or node.kind in UNDERSTOOD_KINDS


def variable_says_all(name: str, value: str) -> bool:
    """Whether a program that gets a variable runs no command because of it but one that is its value."""
    if UNKNOWN in value and COMMAND_VARIABLES.fullmatch(name):
        return False
    return not ADDS_COMMANDS.fullmatch(name) or HARMLESS_VALUES.fullmatch(value) is not None


def commands_in_values(text: str) -> Forms:
    """Commands in the values that a text gives to variables, and in texts that a shell may take for an expression."""
    try:
        root, _ = joined_tree(text)
    except NotProved:
        return
    values = [value for _, value in _assigned(root)]
    texts = (word_of(node) for node in below(root) if node.kind in ("raw_string", "string"))
    values += [text for text in texts if SUBSTITUTES.search(text)]
    for value in dict.fromkeys(values):
        yield from commands_in_value(value)


def commands_in_value(value: str) -> Forms:
    """Commands in the value of a variable, which a program may run."""
    for text in dict.fromkeys((value.lstrip("!|"), value.partition("=")[2] if value[:1] == "-" else "")):
        yield from (Perhaps(argv) for argv in found_in(text, 1) if argv[0] != UNKNOWN_WORD)


def _assigned(root: Node) -> Iterator[tuple[str, str]]:
    for node in below(root):
        name, value = node.field("name"), node.field("value")
        if node.kind == "variable_assignment" and name is not None and value is not None:
            yield name.text, word_of(value)


def _is_known(command: FoundCommand, depth: int) -> bool:
    words = [UNKNOWN_WORD if UNKNOWN in word else word for word in command.argv]
    return says_all(words, depth)

"""Tables of programs that run another command: where in their arguments it begins, or which options hold it.

Unlike the rows of `wrappers.py`, these prove nothing. They say where rules that deny a command look for it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from toolcrib.access import UNKNOWN_WORD
from toolcrib.command.programs.traits import SHELLS, known_name, traits_of
from toolcrib.command.programs.wrappers import ASSIGNMENT, WRAPPERS, inner_at
from toolcrib.dataclass import dataclass

MAX_WORDS = 48  # of a launcher, among which a command begins
VALUED = frozenset(  # options with a value
    [
        "-C", "-D", "-e", "-n", "-o", "-p", "-u", "--chdir", "--env", "--exts", "--group", "--name", "--output",
        "--prefix", "--property", "--python", "--with",
    ]
)  # fmt: skip
NO_PROGRAM = re.compile(r"[-{(!]|[\d.]+\w{0,2}|/dev/\w+|0x[\da-f]+|[\d,:-]+|(?:.*/)?|\.\.?|[^/\s]*[@:=,]\S*")
SETS = re.compile(r"[A-Za-z_]\w*(?:\[.*\])?\+?=.*", re.DOTALL)  # a variable, as a shell may write it
SET_ANY = {"doas", "env", "sudo"}  # also variables that no shell has: `a-b=1`
OF_ZSH = re.compile(r"=[A-Za-z]\S*")  # zsh puts the file of the program of that name in its place
SCRIPT = re.compile(r"[\s;|&()<>$`]")  # in a word that is handed to a shell


@dataclass(frozen=True, slots=True)
class Launcher:
    """`behind`: words behind which the command begins; without them it begins behind the options of the launcher.

    `operands`: how many words of its own stand before it. `needs`: words of which one must be there. `also`: it
    runs commands in other ways too, so that its words do not say whether it runs one. `valued`: its options with a value.
    `runs_nothing`: an expression for all its words, with which it runs no command at all.
    """

    behind: frozenset[str] = frozenset()
    operands: int = 0
    needs: frozenset[str] = frozenset()
    also: bool = False
    valued: frozenset[str] = frozenset()
    runs_nothing: str = r"(?!)"


def _behind(words: str, operands: int = 0, needs: str = "") -> Launcher:
    return Launcher(frozenset(words.split()), operands, frozenset(needs.split()))


NOT_BY_WORDS = Launcher(needs=frozenset({"\0"}), also=True)
ROWS: tuple[tuple[str, Launcher], ...] = (
    ("find", _behind("-exec -execdir -ok -okdir")),
    ("fd fdfind", _behind("-x -X --exec --exec-batch")),
    ("mise", _behind("-- -c --command", needs="exec x")),
    ("gdb", _behind("--args")),
    ("lldb", _behind("--")),
    ("direnv", _behind("exec", 1)),
    ("cmd", _behind("/c /C /k /K")),
    ("conda hatch pdm pipenv pixi poetry rye uv", _behind("run")),
    ("npm", _behind("exec x --script-shell")),
    ("npx", _behind("-c --call")),
    ("pnpm yarn", _behind("exec")),
    ("bundle composer", _behind("exec")),
    ("asdf fnm lerna nodenv pyenv rbenv volta", _behind("exec run --")),
    ("aws-vault chamber nvm", _behind("exec", 1)),
    (
        "cabal doppler dotenv dotenvx dune foreman gem guix honcho infisical jj mamba micromamba op opam rush schroot stack turbo",
        _behind("exec run --"),
    ),
    ("cargo", _behind("-- -s --shell", needs="watch")),
    ("cmake", _behind("env time chdir", needs="-E")),
    ("ip", _behind("exec", 1)),
    ("nix nix-shell", _behind("-c --command --run")),
    ("just", _behind("--command -c")),
    ("gnome-terminal", _behind("-- -e -x")),
    ("alacritty konsole x-terminal-emulator xterm", _behind("-e")),
    ("rr", _behind("record")),
    ("start-stop-daemon", _behind("--exec -x --startas -a")),
    ("chroot envdir faketime gosu perf s6-setuidgid setuidgid sg su su-exec", Launcher(operands=1)),
    ("pkexec run0 runuser", Launcher(valued=frozenset({"-u", "--user"}))),
    (
        "autossh ssh",
        Launcher(operands=1, valued=frozenset(f"-{letter}" for letter in "BDEFIJLMOQRSWbceilmopw")),
    ),
    ("ssh-agent", Launcher(valued=frozenset({"-a", "-E", "-O", "-P", "-t"}))),
    ("mpiexec mpirun srun", Launcher(valued=frozenset({"-n", "-np", "-N", "-c"}))),
    (
        "screen",
        Launcher(
            operands=1,
            also=True,
            runs_nothing=r"(?:-(?:ls|list|wipe|[dDrRx]{1,4})(?: (?!-)[\w.-]+)?(?: |$))*",
        ),
    ),
    (
        "tmux",
        Launcher(
            operands=1,
            also=True,
            runs_nothing=r"(?:a|at|attach|attach-session|detach|has|has-session|kill-server|kill-session|ls|list-\w+|ls[pw]|new"
            r"|new-session|)(?: -(?:[adADrx]+|[nst] ?[\w.:@%$-]+))*",
        ),
    ),
    ("debconf debconf-apt-progress sotruss", Launcher(valued=frozenset({"-o"}))),
    ("logsave repeat", Launcher(operands=1)),
    # Keywords of the shell, which the parser may take for names of programs.
    ("! { coproc do elif else if nocorrect noglob then until while", Launcher()),
    # Like a shell, these read files of commands: a name among their words is one of a file.
    (". alias at batch csh ed emacs ex fc fish make nvim source tcsh vi vim", NOT_BY_WORDS),
)
LAUNCHERS = dict.fromkeys(SHELLS, NOT_BY_WORDS) | {name: row for names, row in ROWS for name in names.split()}
MANY = frozenset({"coproc", "hyperfine", "parallel"})  # each of their words may be a command
# Options whose value is a command, of programs that do something else. A value may also be joined to its option. With `,`
# commas separate the words of the command; with `|` a value is a command only behind `|` or `!`.
OPTIONS: tuple[tuple[str, str], ...] = (
    (
        "git",
        "--access-hook --authors-prog --browser --cc-cmd --exec --extcmd --header-cmd --httpd --open-files-in-pager"
        " --receive-pack --sendmail-cmd --smtp-server --to-cmd --upload-pack",
    ),
    ("rsync", "-e --rsh --rsync-path"),
    ("sort", "--compress-program"),
    ("split", "--filter"),
    ("man", "-P -H --pager --html"),
    ("ag ack bat", "--pager"),
    ("dpkg-architecture", "-c --command"),
    ("hash", "-p"),
    ("install", "--strip-program"),
    ("pip pip3", "--editor"),
    ("prove", "-e --exec"),
    ("tar", "-I -F --info-script --new-volume-script --rsh-command --to-command --use-compress-program"),
    ("wget", "--use-askpass"),
    ("flock runuser script sg su", "-c --command"),
    ("mise", "--command"),
    ("zip", "-TT --unzip-command"),
    ("scp", "-S"),
    ("sftp", "-S -D"),
    ("compgen complete mapfile readarray", "-C"),
    ("go", "-exec -toolexec -vettool"),
    ("nc ncat netcat", "-e -c --exec --sh-exec"),
    ("rg", "--pre"),
    ("npm npx", "--call --editor --script-shell --viewer"),
    ("fzf", "--preview"),
    ("cc c++ clang clang++ gcc g++", "-wrapper,"),
    ("strace", "-o| --output|"),
)
VALUED_OF_TAR = "CFHIKLNTVXbfg"  # its options of one letter that take a value
# Of git send-email. They take an address, and are not short for --cc-cmd and --to-cmd.
OTHER_OPTIONS = {"--cc", "--to"}
COMMAND_OPTIONS = {name: options.split() for names, options in OPTIONS for name in names.split()}


def values_of_options(argv: Sequence[str]) -> Iterator[str]:
    """The commands that a program is given as values of its options. A long option may be shortened."""
    name = known_name(argv[0])
    if name == "tar" and argv[1:] and argv[1][:1] != "-":
        argv = _with_dashes(argv)
    for option in COMMAND_OPTIONS.get("git" if name.startswith("git-") else name, ()):
        for value in _values(argv, option.rstrip(",|")):
            if option[-1] != "|":
                yield value.replace(",", " ") if option[-1] == "," else value
            elif value[:1] in ("!", "|"):
                yield value[1:]


def _values(argv: Sequence[str], option: str) -> Iterator[str]:
    """The values of one option, as the next word or joined to it, with other options of one letter before it."""
    is_long = option[:2] == "--"
    joined = re.compile(rf"-[A-Za-z]*?{option[1:]}(.*)", re.DOTALL)
    for at, word in enumerate(argv[1:], start=2):
        stem, equals, value = word.partition("=")
        if stem == option or (is_long and _shortens(stem, option)):
            yield from [value] if equals else argv[at : at + 1]
        elif not is_long and (match := joined.fullmatch(word)) is not None:
            yield from [match[1]] if match[1] else argv[at : at + 1]


def _with_dashes(argv: Sequence[str]) -> Sequence[str]:
    """The words of tar with each letter of the first as an option of its own, and its value behind it.

    >>> _with_dashes(["tar", "cIf", "xz", "a.tar", "b"])
    ['tar', '-c', '-I', 'xz', '-f', 'a.tar', 'b']
    """
    words = list(argv[:1])
    rest = iter(argv[2:])
    for letter in argv[1]:
        words.append(f"-{letter}")
        words += itertools.islice(rest, letter in VALUED_OF_TAR)
    return [*words, *rest]


def _shortens(word: str, option: str) -> bool:
    """Whether a word may be a long option, shortened to its beginning. Programs in Perl take it behind one dash, too."""
    return (
        len(word) > 3
        and word[:1] == "-"
        and word not in OTHER_OPTIONS
        and option[2:].startswith(word.lstrip("-"))
    )


def launches(name: str) -> bool:
    """Whether a program may run a command that stands among its words."""
    return name in LAUNCHERS or traits_of(name).runs not in ("", "code")


def launches_behind(name: str) -> bool:
    """Whether a program runs commands only behind certain words."""
    return name in LAUNCHERS and bool(LAUNCHERS[name].behind)


def starts_in(argv: Sequence[str]) -> tuple[dict[int, bool], bool]:
    """{where a command may begin in a launcher's words: whether that is certain}, and whether there is no other place.

    >>> starts_in(["valgrind", "-v", "./a", "rm"]), starts_in(["gdb", "--args", "./a", "rm"])
    (({2: True, 3: False}, False), ({2: True}, True))
    """
    name = known_name(argv[0])
    argv = [name, *argv[1:]]
    row = LAUNCHERS.get(name, Launcher())
    if re.fullmatch(row.runs_nothing, " ".join(argv[1:])):
        return {}, True
    if name in WRAPPERS and (found_behind := _behind_wrapper(argv)) is not None:
        return found_behind
    if row.needs and row.needs.isdisjoint(argv):
        return {}, not row.also
    if not row.behind:
        found, certain = _from(argv, 1, row)
        if row.also:  # a single word may be the name of a session of tmux
            found = {at: sure and " " in argv[at] for at, sure in found.items()}
        return found, certain and not row.also and name not in WRAPPERS
    found = {}
    markers = [at for at, word in enumerate(argv) if at and word in row.behind and (word != "x" or at == 1)]
    for at in markers:
        found.update(_from(argv, at + 1, row)[0])
    may_be_unseen = UNKNOWN_WORD in argv and traits_of(name).runs == "commands"
    return found, bool(markers) or not may_be_unseen


def _names_places(argv: Sequence[str], at: int) -> bool:
    """Whether it is known where xargs puts the words that it reads: at the end, or in the place of words with `{}`."""
    options = " ".join(argv[1:at])
    return ("-I" not in options or re.search(r"-I ?\{\}(?: |$)", options) is not None) and not any(
        "{}" in word and SCRIPT.search(word) for word in argv[at:]
    )


def _behind_wrapper(argv: Sequence[str]) -> tuple[dict[int, bool], bool] | None:
    """What `starts_in` gives of a wrapper, whose command stands behind the variables that it sets; None if unclear."""
    name, at = argv[0], inner_at(argv)
    if at is None:
        return None
    at += argv[at] == "--"
    named: dict[int, bool] = {}  # `=rm` is a program in zsh, and a variable for `env`
    while at < len(argv) and (SETS.fullmatch(argv[at]) or (name in SET_ANY and "=" in argv[at])):
        if OF_ZSH.fullmatch(argv[at]):
            named[at] = True
        at += 1
    if named:
        return {**named, **({at: True} if at < len(argv) else {})}, False
    if at < len(argv) and (argv[at][:1] not in "-{(!" or argv[at] in LAUNCHERS):
        return {at: True}, not WRAPPERS[name].adds_words or (name == "xargs" and _names_places(argv, at))
    return None


def words_from(argv: Sequence[str], start: int) -> Sequence[str]:
    """The words of a command that begins at one place, with unknown ones where a launcher before it adds some.

    >>> words_from(["xargs", "-n1", "git"], 2)
    ['git', '\ufffd']
    """
    words = argv[start:]
    if not any(name in WRAPPERS and WRAPPERS[name].adds_words for name in map(known_name, argv[:start])):
        return words
    placed = (UNKNOWN_WORD if "{}" in word and not SCRIPT.search(word) else word for word in words)
    return [*placed, UNKNOWN_WORD]


def _from(argv: Sequence[str], start: int, row: Launcher) -> tuple[dict[int, bool], bool]:
    """As `starts_in`, from `start` on. A word after an option may be its value; then the command begins later."""
    found: dict[int, bool] = {}
    option, doubt, operands = "", False, row.operands
    for at in range(start, min(len(argv), start + MAX_WORDS)):
        word = argv[at]
        if word == "--":
            begins = at + 1 + operands
            return ({**found, begins: True} if begins < len(argv) else found), True
        if word[:1] == "-" != word or not word or ASSIGNMENT.fullmatch(word):
            option = word if word[:1] == "-" and "=" not in word else ""
        elif option in row.valued:
            option = ""
        elif NO_PROGRAM.fullmatch(word):
            doubt = doubt or bool(operands and option and option not in VALUED)
            operands -= bool(operands and not option)
            option = ""
        elif option:
            found[at] = not doubt and option not in VALUED
            doubt, option = doubt or option not in VALUED, ""
        elif operands:
            operands -= 1
            if doubt:
                found[at] = False
        else:
            found[at] = not doubt
            many = argv[0] in MANY
            later = range(at + 1, min(len(argv), start + MAX_WORDS)) if doubt or many else ()
            found.update((one, many) for one in later if argv[one][:1] != "-")
            return found, not doubt
    return found, False

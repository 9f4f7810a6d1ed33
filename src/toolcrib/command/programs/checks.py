"""Checks of arguments whose meaning an option does not tell, a function each. They raise NotProved."""

from __future__ import annotations

import re

from toolcrib.command.not_proved import NotProved
from toolcrib.command.plan import STATUS_VARIABLE
from toolcrib.command.programs.options import Arguments

# Databases that are files of the system. `hosts` and `networks` would ask a server, `shadow` shows hashes.
DATABASES = {"passwd", "group", "services", "protocols", "rpc", "ethers"}
VARIABLES = {
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "TMPDIR",
    "TZ",
}
PLAIN_NAME = re.compile(r"[A-Za-z0-9_./@+,=~-]+")
PROGRAM = re.compile(r"[A-Za-z0-9_.+-]+|\[")
YAML_STYLE = re.compile(r"relaxed|default|\{ *extends: *(?:relaxed|default)\b(?!.*from-file)[^/]*")
ARCHIVE = re.compile(
    r"\.(?:tar|t?gz|t?bz2|t?xz|zip|whl|jar|war|ear|rpm|deb|Z|z|7z|ear|egg|apk|src\.rpm)(?:\W|$)",
    re.IGNORECASE,
)
# GNU dc has ! (runs a command), and strings that become commands ([ ], a, x, s, l, ?).
DC = re.compile(r"[0-9A-F_.+*/%^|~kiopnfcdrzvRKIOZX \t\n-]*")
# Words of ip that only show. An abbreviation is listed only where it can mean nothing else.
IP_OBJECTS = {
    "a", "addr", "address", "l", "link", "r", "ro", "route", "ru", "rule", "n", "neigh", "neighbor", "neighbour", "maddr", "maddress",
    "mroute", "netc", "netconf", "tunnel", "tunt", "tuntap", "netns", "vrf", "nexthop", "token", "tcp_metrics",
    "fdb", "v", "vlan", "mdb", "h", "help",
}  # fmt: skip
CONNECTIONS = re.compile(r"[46]?(?:tcp|udp)?(?:@[\d.]+)?(?::[\w,-]+)?", re.IGNORECASE)
SOCKETS = re.compile(
    r"state|exclude|established|syn-sent|syn-recv|fin-wait-[12]|time-wait|closed?|close-wait|last-ack|listen(?:ing)?|closing"
    r"|all|connected|synchronized|bucket|big|sport|dport|src|dst|and|or|not|[()!<>=]|[!<>=]=|&&|\|\||eq|ne|gt|lt|ge|le"
    r"|:\d+|\d+|:[a-z][\w-]*|[\d.]+(?:/\d+)?(?::\d+)?"
)
IP_SHOWS = {"sh", "show", "ls", "lst", "list"}


def program_names(found: Arguments) -> None:
    """Accepts names of programs for `type`. Of a path it would tell whether a file is there."""
    if not found.of("data") or not all(PROGRAM.fullmatch(name) for name in found.of("data")):
        raise NotProved("type: what is not the name of a program")


def terminal_queries(found: Arguments) -> None:
    if not set(found.of("data")) <= {"size", "speed"}:
        raise NotProved("stty: sets the terminal")


def replaced_variables(found: Arguments) -> None:
    """Accepts envsubst that is told which variables to put in, if they may be shown. Otherwise it puts in any."""
    if found.options & {"-v", "--variables"}:
        return
    named = [name for word, _ in found.operands for name in re.findall(r"\$\{?(\w+)", word.literal or "$?")]
    if not named or not set(named) <= VARIABLES:
        raise NotProved("envsubst: puts in variables that are not on its list (envsubst '$HOME $USER')")


def checked_style(found: Arguments) -> None:
    """Accepts settings of yamllint that name no file for it to read."""
    for option, word in found.values:
        if option in ("-d", "--config-data") and not YAML_STYLE.fullmatch(word.literal or ""):
            raise NotProved("yamllint: settings that may name a file")


def databases(found: Arguments) -> None:
    if not found.of("data") or found.of("data")[0] not in DATABASES:
        raise NotProved("getent: a database that is not on its list")


def capabilities(found: Arguments) -> None:
    """`tput init` and `tput reset` run a program that the description of the terminal names."""
    if set(found.of("data")) & {"init", "reset"} or not found.of("data"):
        raise NotProved("tput: a capability that does more than print")


def printed_variables(found: Arguments) -> None:
    if not found.of("data") or not set(found.of("data")) <= VARIABLES | {STATUS_VARIABLE}:
        raise NotProved("printenv: variables that are not on its list")


def sockets(found: Arguments) -> None:
    """The filter of ss: states, addresses by number, ports. It would look up names of hosts, perhaps at a server."""
    if not all(SOCKETS.fullmatch(word) for text in found.of("data") for word in text.split()):
        raise NotProved("ss: a filter that may look up a name")


def connections(found: Arguments) -> None:
    """lsof looks up the name of a host that it is given, also with -n."""
    given = [*found.of("read"), *(word.literal or "" for option, word in found.values if option == "-i")]
    if any("@" in text and not CONNECTIONS.fullmatch(text) for text in given):
        raise NotProved("lsof: an address that may be looked up")


def no_ports(found: Arguments) -> None:
    """Refuses ports (`8080/tcp`): to find their processes, fuser connects to them."""
    if any(name.rpartition("/")[2] in ("tcp", "udp") for name in found.of("read")):
        raise NotProved("fuser: a port, to which it connects")


def omitted_processes(found: Arguments) -> None:
    """Requires a number for `pidof -o`: pidof writes a value that it cannot read to the log of the system."""
    if any(not re.fullmatch(r"\d+|%PPID", word.literal or "") for _, word in found.values):
        raise NotProved("pidof: -o takes the number of a process")


def settings(found: Arguments) -> None:
    """Accepts words that only name settings: `sysctl kernel.hostname`. BSD also sets one by `name:value`."""
    words = found.of("data")
    if any("=" in word or ":" in word for word in words):
        raise NotProved("sysctl: sets a value")


def marks(found: Arguments) -> None:
    if not found.of("data") or not found.of("data")[0].startswith("show"):
        raise NotProved("apt-mark: only what begins with show is known to change nothing")


def ip(found: Arguments) -> None:
    words = found.of("data")
    if not words or words[0] not in IP_OBJECTS:
        raise NotProved("ip: an object that is not on its list")
    routes = words[0] in ("r", "ro", "route", "ru", "rule")
    shows = len(words) == 1 or words[1] in IP_SHOWS or (routes and words[1] in ("get", "g", "s"))
    if not shows:
        raise NotProved(f"ip {words[0]}: {words[1]} is not known to change nothing")


def plain_names(found: Arguments) -> None:
    """Refuses names with signs that have a meaning where a script puts them: in a command, or in a program for sed."""
    if not all(PLAIN_NAME.fullmatch(name) for name in found.of("read")):
        raise NotProved("a name with signs that a script could misread")
    if any("\n" in text for text in found.of("data")):
        raise NotProved("a pattern of several lines")


def plain_words(found: Arguments) -> None:
    """As `plain_names`, for scripts that split the values of options, too: `bzgrep '-ex .env' y` searches `.env`."""
    plain_names(found)
    if not all(PLAIN_NAME.fullmatch(word.literal or "") for _, word in found.values):
        raise NotProved("a value with signs that a script could misread")


def option_first(found: Arguments) -> None:
    """Refuses an option behind a file, for programs whose options hold only for the files that follow."""
    if not found.starts_with_option:
        raise NotProved("an option behind a file, for which it does not hold")


def cloc(found: Arguments) -> None:
    """cloc unpacks archives with commands that it makes from their names."""
    plain_names(found)
    if any(map(ARCHIVE.search, found.of("read"))):
        raise NotProved("cloc: an archive, which it would unpack")
    if not found.of("read") and not found.options & {"--show-lang", "--show-ext"}:
        raise NotProved("cloc: no files")


def bat(found: Arguments) -> None:
    if found.of("read")[:1] == ["cache"]:
        raise NotProved("bat: changes its cache")


def no_schemes(found: Arguments) -> None:
    """Refuses names with a scheme, by which openssl loads a library: `org.openssl.engine:/a/b.so:key`."""
    if any(":" in name for name in found.of("read")):
        raise NotProved("openssl: a name that may load a library")


def dc(found: Arguments) -> None:
    for _, word in found.values:
        if word.literal is None or not DC.fullmatch(word.literal):
            raise NotProved("dc: a program that may do more than compute")


def no_commands(found: Arguments) -> None:
    """`+…` is no file but a first command, or pages."""
    for name in found.of("read"):
        if name.startswith("+") and not re.fullmatch(r"\+[0-9:]+", name):
            raise NotProved("a first command for a pager")
    found.operands = [
        (word, "data" if (word.literal or "").startswith("+") else kind) for word, kind in found.operands
    ]


def no_argument_file(found: Arguments) -> None:
    """Refuses `@FILE`, in whose place a program takes the words in that file, also as the value of an option."""
    if any(word.prefix.startswith("@") for word in (*(word for word, _ in found.operands), *found.apart)):
        raise NotProved("arguments out of a file (@FILE)")


def archive_member(found: Arguments) -> None:
    """`ar t FILE`: the letters of what it does come first."""
    no_argument_file(found)
    letters = (found.of("data") or [""])[0].lstrip("-")
    if "t" not in letters or set(letters) - set("tvOV"):
        raise NotProved("ar: only listing (ar t FILE) is known to change nothing")


def seven_zip(found: Arguments) -> None:
    if (found.of("data") or [""])[0] not in ("l", "t"):
        raise NotProved("7z: only l and t are known to change nothing")
    if any(name.startswith("@") for name in found.of("data", "read")):
        raise NotProved("7z: a list of files")


def local_archive(found: Arguments) -> None:
    if any(":" in text.partition("/")[0] for text in found.of("read")):
        raise NotProved("an archive on another machine")

"""Removes from a git configuration the lines that let git run programs or lead it to other files.

The tables list what may stay, not what must go: every year git gains settings that run programs. A line stays only if
it is written so that git cannot read it in another way than we do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

HEADER = re.compile(rb'\[([A-Za-z0-9-]+)(?:\.([A-Za-z0-9.-]+)|[ \t]+"((?:[^"\\]|\\.)*)")?\]')
KEY = re.compile(rb"([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*))?")
CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
HELPER = re.compile(rb"\s*(?:[A-Za-z0-9+.-]+::|-)")  # of a URL: another program than git's own, or an option
PLAIN = re.compile(rb"[^\"\\;#]*")
VALUE = re.compile(rb'(?:"(?:[^"\\]|\\.)*"|\\.|[^"\\;#])*')
ESCAPES = {b"n": b"\n", b"t": b"\t", b"b": b"\b"}
ESCAPED_OR_QUOTE = re.compile(rb'\\(.)|"')

ALL = frozenset({b"*"})
# {section: keys that may stay}, for `[section]` and for `[section "subsection"]`.
OF_A_SECTION = {
    **dict.fromkeys(
        (
            b"user", b"author", b"committer", b"color", b"advice", b"pull", b"push", b"fetch", b"rebase", b"commit",
            b"tag", b"log", b"status", b"pack", b"index", b"feature", b"worktree", b"stash", b"rerere", b"column",
            b"apply", b"blame", b"grep", b"checkout", b"extensions", b"maintenance", b"versionsort", b"transfer",
        ),
        ALL,
    ),
    b"core": frozenset(
        b"repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol "
        b"safecrlf quotepath compression loosecompression bigfilethreshold sparsecheckout sparsecheckoutcone "
        b"sharedrepository abbrev whitespace untrackedcache preloadindex commentchar commentstring checkstat "
        b"trustctime multipackindex commitgraph protecthfs protectntfs hidedotfiles longpaths fscache splitindex "
        b"warnambiguousrefs excludesfile notesref fsync fsyncmethod disambiguate worktree fsmonitor".split()
    ),
    b"init": frozenset({b"defaultbranch"}),
    b"gc": frozenset(b"auto autodetach autopacklimit pruneexpire reflogexpire worktreepruneexpire".split()),
    b"branch": frozenset(b"autosetupmerge autosetuprebase sort".split()),
    b"remote": frozenset({b"pushdefault"}),
    b"lfs": frozenset({b"repositoryformatversion"}),
    b"merge": frozenset(b"ff conflictstyle log renames stat verbosity autostash directoryrenames".split()),
    b"diff": frozenset(b"algorithm renames renamelimit colormoved mnemonicprefix noprefix submodule context".split()),
    b"protocol": frozenset({b"version"}),
    b"gpg": frozenset({b"format"}),
    b"submodule": frozenset(b"active recurse fetchjobs".split()),
    b"uploadpack": frozenset(b"allowfilter allowanysha1inwant allowreachablesha1inwant allowtipsha1inwant".split()),
    b"receive": frozenset(b"denycurrentbranch denynonfastforwards denydeletes".split()),
}  # fmt: skip
OF_A_SUBSECTION = {
    b"branch": frozenset(
        b"remote merge rebase description pushremote vscode-merge-base gh-merge-base github-pr-owner-number".split()
    ),
    b"remote": frozenset(
        b"url pushurl fetch push tagopt prune prunetags mirror promisor partialclonefilter skipdefaultupdate "
        b"skipfetchall gh-resolved".split()
    ),
    b"submodule": frozenset(
        b"url active branch ignore fetchrecursesubmodules shallow update path".split()
    ),
    b"lfs": frozenset(b"access locksverify".split()),
    **dict.fromkeys((b"color", b"advice", b"maintenance"), ALL),
}  # fmt: skip
URLS = (b"url", b"pushurl", b"remote", b"pushremote", b"pushdefault", b"partialclone")
UPDATES = (b"checkout", b"rebase", b"merge", b"none")
NO = (b"false", b"no", b"off", b"0")
UNREADABLE_LINE = "a line that is not understood"

ConfigLine = tuple[bytes, bytes]  # its section and its text
Leads = Callable[[str], bool]


def lines(data: bytes) -> Iterator[tuple[ConfigLine, str, bytes, bytes, bytes]]:
    """Each line of a configuration: the line, its name for people ("" for none), key, subsection and value."""
    section = sub = b""
    known = True
    for raw in data.split(b"\n"):
        text = raw.removesuffix(b"\r").strip(b" \t")
        here = section + b"." + sub if known else b"?"
        if not text or (text[:1] in b"#;" and not text.endswith(b"\\")):
            yield (here, text), "", b"", b"", b""
            continue
        sound = not CONTROL.search(text) and not text.endswith(b"\\")
        if sound and (header := HEADER.fullmatch(text)):
            section, sub, known = header[1].lower(), header[2] or header[3] or b"", True
            yield (b"", text), "", b"", b"", b""
        elif sound and known and section and (key := KEY.fullmatch(text)) and _is_closed(key[2] or b""):
            name = b".".join(part for part in (section, sub, key[1]) if part)
            yield (here, text), name.decode("utf-8", "replace"), key[1].lower(), sub, key[2] or b""
        else:
            known = known and not text.startswith(b"[")
            yield (here, text), UNREADABLE_LINE, b"", b"", b""


def known_lines(data: bytes) -> set[ConfigLine]:
    """The lines of a configuration, so that they are recognised in another one."""
    return {line for line, *_ in lines(data)}


def without_programs(data: bytes, known: set[ConfigLine], leads: Leads) -> tuple[bytes, list[str]]:
    """The configuration without the lines that may not stay, and the names of those lines.

    Lines of the set `known` stay. `leads` says whether a path may be the worktree.
    """
    kept: list[bytes] = []
    gone: dict[str, None] = {}
    *ended, last = data.split(b"\n")
    # Each line goes with its end: to git, a carriage return that ends the file is an error.
    raws = [*(raw + b"\n" for raw in ended), last]
    for raw, (line, name, key, sub, value) in zip(raws, lines(data), strict=True):
        known_well = line in known and name != UNREADABLE_LINE
        if not name or known_well or _may_stay(line[0].partition(b".")[0], sub, key, value, leads):
            kept.append(raw)
        else:
            gone[name] = None
    return b"".join(kept), list(gone)


def _may_stay(section: bytes, sub: bytes, key: bytes, value: bytes, leads: Leads) -> bool:
    keys = (OF_A_SUBSECTION if sub else OF_A_SECTION).get(section, frozenset())
    if not key or not (keys is ALL or key in keys):
        return False
    if section == b"core" and key == b"fsmonitor":
        return value.lower() in NO
    if section == b"core" and key == b"worktree":
        return PLAIN.fullmatch(value) is not None and leads(value.decode("utf-8", "surrogateescape"))
    if section == b"submodule" and key == b"update":
        return value in UPDATES
    if section == b"remote" and HELPER.match(re.sub(rb"\\(.)", rb"\1", sub)):
        return False  # git hands such a name to `git fetch`, where it is an option or an address
    return not (key in URLS and HELPER.match(plain_value(value)))


def _is_closed(value: bytes) -> bool:
    """Whether each quote in a value ends in it."""
    return re.sub(rb"\\.", b"", value).count(b'"') % 2 == 0


def plain_value(value: bytes) -> bytes:
    """A value as git reads it, without quotes, escapes and a comment at its end.

    >>> plain_value(b'"../my hooks" # shared')
    b'../my hooks'
    """
    found = VALUE.match(value)
    return ESCAPED_OR_QUOTE.sub(_unescaped, found[0].strip() if found else b"")


def _unescaped(match: re.Match[bytes]) -> bytes:
    char = match[1] or b""
    return ESCAPES.get(char, char)

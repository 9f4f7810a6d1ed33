"""Reads the arguments of Miller (`mlr OPTIONS VERB OPTIONS … then VERB … FILES`).

Verbs that write files or run programs are not among those listed. https://miller.readthedocs.io
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from toolcrib.command.not_proved import NotProved
from toolcrib.command.plan import Word
from toolcrib.command.programs.options import listed_options

_FORMATS = "csv csvlite tsv tsvlite json jsonl dkvp nidx xtab pprint markdown md usv asv"
_OPTIONS = listed_options(
    "-n -N -I= -p -T -S -A -O -c -t -j -i= -o= --io= --from=< --nr-progress-mod= --records-per-batch= --ofmt= --fflatsep="
    " --flatsep= --jflatsep= --fs= --ps= --rs= --ifs= --ips= --irs= --ofs= --ops= --ors= --repifs --implicit-csv-header"
    " --headerless-csv-output --hi --ho --headerless-csv-input --implicit-tsv-header --headerless-tsv-output"
    " --allow-ragged-csv-input --ragged --quote-all --lazy-quotes --barred --right --xvright --key-color= --value-color="
    " --no-color -M --always-color -C --jvstack --no-jvstack --jlistwrap --no-jlistwrap --jvquoteall --infer-none"
    " --infer-octal --infer-int-as-float --no-auto-flatten --no-auto-unflatten --no-dedupe-field-names --gzin --bz2in --zin"
    " --skip-comments --pass-comments --skip-comments-with= --pass-comments-with= --nidx --fflush --no-fflush"
    + "".join(f" --{name} --i{name} --o{name}" for name in _FORMATS.split())
    + "".join(f" --{one}2{other}" for one in "ctjldnxp" for other in "ctjldnxpmb")
)
del _OPTIONS["-I"]  # changes the files
# The options of each verb, and how many words follow them.
_ROWS: dict[str, tuple[str, int]] = {
    "cat": ("-n -N= -g= --filename --filenum", 0),
    **dict.fromkeys(("head", "tail", "decimate"), ("-n= -b -e -g=", 0)),
    "sort": ("-f= -r= -c= -cr= -n= -nf= -nr= -t= -tr= -rt=", 0),
    "cut": ("-f= -o -x -r --complement", 0),
    "uniq": ("-g= -f= -o= -c -n -a -d -u", 0),
    "count": ("-g= -o= -d", 0),
    "count-distinct": ("-f= -o= -n -u", 0),
    "count-similar": ("-g= -o=", 0),
    "stats1": ("-a= -f= -g= --fr= --fx= --gr= --gx= -i -s", 0),
    "stats2": ("-a= -f= -g= --fit", 0),
    "merge-fields": ("-a= -f= -r= -c= -o= -i -k", 0),
    "step": ("-a= -f= -g= -d= -o= -F", 0),
    "top": ("-f= -g= -n= -o= -a -F --min --max", 0),
    **dict.fromkeys(("most-frequent", "least-frequent"), ("-f= -n= -o= -b", 0)),
    "histogram": ("-f= --lo= --hi= --nbins= --auto -o=", 0),
    "fraction": ("-f= -g= -p -c", 0),
    "nest": ("-f= --nested-fs= --nested-ps= --evar= --ivar= --explode --implode --values --pairs --across-records"
             " --across-fields", 0),
    "reorder": ("-f= -b= -a= -e", 0),
    "rename": ("-r -g", 1),
    "reshape": ("-i= -r= -o= -s=", 0),
    "fill-down": ("-f= -a --all --only-if-blank --only-if-absent", 0),
    "fill-empty": ("-v= -S --only-if-blank", 0),
    "unsparsify": ("-f= --fill-with=", 0),
    "sample": ("-k= -g=", 0),
    "summary": ("-a= -x= --all --transpose", 0),
    "having-fields": ("--at-least= --which-are= --at-most= --all-defined= --any-defined= --all-matching= --any-matching="
                      " --none-matching=", 0),
    "sort-within-records": ("-r", 0),
    "seqgen": ("-f= --start= --stop= --step=", 0),
    "sec2gmt": ("--millis --micros --nanos", 1),
    "grep": ("-i -v -a", 1),
    "join": ("-f=< -j= -l= -r= --lp= --rp= --np --ul --ur -u -s -i=", 0),
    **dict.fromkeys(("put", "filter"), ("-q -S -F -x", 1)),
    **dict.fromkeys(("label", "group-by", "sec2gmtdate"), ("", 1)),
    **dict.fromkeys(("tac", "group-like", "regularize", "shuffle", "nothing", "skip-trivial-records", "flatten", "unflatten",
                     "remove-empty-columns", "altkv", "unspace", "json-parse", "json-stringify"), ("", 0)),
}  # fmt: skip
VERBS = {name: (listed_options(options), words) for name, (options, words) in _ROWS.items()}
# What an expression of `put` and `filter` may be made of. It could run programs (system, exec), read the environment
# (ENV) and write files (print > …), so each of its words must be known, also one that touches a number, as in
# `1..system("x")`. A text has no escaped quote or backslash, which versions may read in two ways.
TOKEN = re.compile(
    r'"(?:[^"\\]|\\[^"\\])*"i?|(?P<word>[A-Za-z_]\w*)|[$@](?:\w+|\*|\{[^{}"]*\})'
    r"|0x[0-9a-fA-F]+|0b[01]+|0o[0-7]+|[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|[-+*/%<>=!&|^~?:.,;(){}\[\]\s]"
)
_WORDS = """if elif else for while in break continue true false var str num int float bool map arr funct NR FNR NF FILENAME
    FILENUM M_PI M_E unset filter begin end abs ceil floor round roundm truncate format fmtnum fmtifnum hexfmt min
    max exp expm1 log log10 log1p sqrt cbrt pow sgn sin cos tan asin acos atan atan2 sinh cosh tanh bitcount msub madd
    strlen toupper tolower capitalize lstrip rstrip strip clean_whitespace collapse_whitespace sub gsub ssub gssub
    regextract regextract_or_else substr substr0 substr1 splitax splita splitnv splitnvx splitkv splitkvx joink
    joinv joinkv length depth leafcount haskey mapdiff mapsum mapexcept mapselect get_keys get_values append concat
    flatten unflatten arrayify json_parse json_stringify json_decode json_encode typeof asserting_int is_absent is_present
    is_empty is_not_empty is_null is_not_null is_string is_numeric is_int is_float is_map is_array is_error is_nan boolean
    strftime strptime strftime_local strptime_local sec2gmt sec2gmtdate gmt2sec sec2dhms fsec2dhms sec2hms fsec2hms
    dhms2sec dhms2fsec hms2sec hms2fsec systime systimeint md5 sha1 sha256 sha512 crc32 any every select apply reduce fold
    sort return func"""
KNOWN = frozenset(_WORDS.split())


def files_of(words: Sequence[Word]) -> list[Word]:
    """The words among Miller's arguments that name files. Raises NotProved if it may do more than read and print."""
    found: list[Word] = []
    waiting = list(words)
    if (waiting[0].literal if waiting else "") == "help":
        return []
    found += _options("mlr", _OPTIONS, waiting)
    while True:
        verb = _next(waiting, "mlr: no verb")
        if verb not in VERBS:
            raise NotProved(f"mlr: {verb} is not on its list")
        if [word.literal for word in waiting] == ["--help"]:
            return []
        options, more = VERBS[verb]
        found += _options(f"mlr {verb}", options, waiting)
        for _ in range(more):
            given = _next(waiting, f"mlr {verb}: needs one more word")
            if verb in ("put", "filter"):
                _check_expression(given)
        if not waiting or waiting[0].literal != "then":
            break
        waiting.pop(0)
    if any(word.prefix.startswith("-") for word in waiting):
        raise NotProved("mlr: an option behind the verbs")
    return [*found, *waiting]


def _options(name: str, listed: dict[str, str], waiting: list[Word]) -> Iterator[Word]:
    """Removes the leading options from `waiting`; yields the files among their values."""
    while waiting and waiting[0].prefix.startswith("-"):
        option = _next(waiting, name)
        kind = listed.get(option)
        if kind is None:
            raise NotProved(f"{name}: option {option} is not on its list")
        if kind == "read":
            yield Word((_next(waiting, f"{name}: {option} needs a value"),))
        elif kind != "flag":
            _next(waiting, f"{name}: {option} needs a value")


def _next(waiting: list[Word], missing: str) -> str:
    if not waiting:
        raise NotProved(missing)
    text = waiting.pop(0).literal
    if text is None:
        raise NotProved("mlr: an argument that is only known when it runs")
    return text


def _check_expression(text: str) -> None:
    at = 0
    while at < len(text):
        token = TOKEN.match(text, at)
        if token is None or (token["word"] and token["word"] not in KNOWN):
            raise NotProved("mlr: an expression with words that are not on its list")
        at = token.end()

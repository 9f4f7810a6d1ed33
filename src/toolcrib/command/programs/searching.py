"""Programs that look for text and for files."""

from __future__ import annotations

from collections.abc import Sequence

from toolcrib.command.programs.options import Synopsis
from toolcrib.dataclass import replace

_CONTEXT = "-A= -B= -C= --after-context= --before-context= --context="
_GREP = Synopsis(
    "-V --devices= --exclude-from=< --group-separator= --no-group-separator --binary -EFGPivwxncolLqsHhabIrRzZTuyU -e= -f=< -m= -d= -D= -# --regexp= --file=< --ignore-case --no-ignore-case"
    " --invert-match --word-regexp --line-regexp --count --only-matching --files-with-matches"
    " --files-without-match --line-number --with-filename --no-filename --recursive --dereference-recursive"
    " --extended-regexp --fixed-strings --basic-regexp --perl-regexp --quiet --silent --no-messages --text"
    " --null --null-data --byte-offset --initial-tab --label= --max-count= --include= --exclude="
    f" --exclude-dir= --color? --colour? --binary-files= --directories= --line-buffered {_CONTEXT}",
    "data read*",
    instead="-e -f --regexp --file",
    below="recursive",
    follows="-R --dereference-recursive",
)

_LANGUAGES_OF_AG = (
    "--actionscript --ada --asm --asp --batch --bazel --cc --clojure --coffee --config --cpp --crystal "
    "--csharp --css --cython --delphi --dlang --dot --elisp --elixir --elm --erlang --fortran --fsharp "
    "--gettext --go --gradle --groovy --haml --handlebars --haskell --html --ini --jade --java --jinja2 --js "
    "--json --jsp --julia --kotlin --less --lisp --log --lua --m4 --make --markdown --matlab --md --nim --nix "
    "--objc --objcpp --ocaml --octave --org --perl --php --pike --powershell --proto --ps1 --pug --puppet "
    "--python --qml --racket --rake --restructuredtext --rs --r --rdoc --ruby --rust --sass --scala --scheme "
    "--shell --smalltalk --sql --stylus --swift --tcl --terraform --tex --thrift --toml --ts --twig --vala "
    "--vb --verilog --vhdl --vim --vue --xml --yaml "
)
SYNOPSES: dict[str, Synopsis] = {
    **dict.fromkeys(("grep", "egrep", "fgrep"), _GREP),
    "rgrep": replace(_GREP, below="always", here=True),
    "rg": Synopsis(
        "--no-hidden --passthrough --binary --auto-hybrid-regex --block-buffered --line-buffered --no-context-separator --dfa-size-limit="
        " --regex-size-limit= --field-context-separator= --glob-case-insensitive --include-zero --mmap --no-mmap --no-unicode --unicode"
        " --null-data --path-separator= --pcre2-version --no-encoding --stop-on-nonmatch -ivwxnNcolFsSUPHIpqr0bab -e= -f=< -g= -t= -T= -m= -M= -d= -j= -E= -r= --regexp= --file=< --ignore-case"
        " --smart-case --case-sensitive --word-regexp --line-regexp --fixed-strings --count --count-matches"
        " --files --files-with-matches --files-without-match --line-number --no-line-number --heading"
        " --no-heading --invert-match --only-matching --multiline --multiline-dotall --json --stats --vimgrep"
        " --trim --null --column --no-column --quiet --glob= --iglob= --type= --type-not= --type-list"
        " --max-count= --max-depth= --max-columns= --max-columns-preview --color= --colors= --sort= --sortr="
        " --replace= --threads= --encoding= --with-filename --no-filename --no-messages --passthru --pcre2"
        f" --no-ignore-case --text --no-config --byte-offset --one-file-system --max-filesize= {_CONTEXT}"
        " --pretty --no-follow --crlf --engine= --context-separator= --field-match-separator=",
        "data read*",
        instead="-e -f --regexp --file --files --type-list",
        below="always", here=True,
    ),
    **dict.fromkeys(("fd", "fdfind"), Synopsis(
        "-HIuLq1 --hidden --no-ignore --no-ignore-vcs --no-ignore-parent --unrestricted --and= --follow --prune -o= --owner= --quiet"
        " --show-errors --path-separator= --strip-cwd-prefix? --one-file-system --no-require-git --no-follow --no-hidden --ignore"
        " --ignore-file=< --base-directory=< --search-path=< --max-one-result --newer= --older= --format= -agisFpld0 -t= -e= -E= -d= -S= -j= -c= --absolute-path --glob --ignore-case --case-sensitive"
        " --fixed-strings --full-path --list-details --type= --extension= --exclude= --max-depth= --min-depth="
        " --exact-depth= --size= --threads= --color= --max-results= --print0 --changed-within= --changed-before="
        " --regex --relative-path",
        "data read*", contents=False,
        below="always", here=True,
    )),
    "ag": Synopsis(f"{_LANGUAGES_OF_AG}-Ft -W= -g= --ackmate --after= --before= --column --context= --files-without-matches --only-matching"
               " --print-long-lines --passthrough --silent --stats --stats-only --vimgrep --null --print0 --all-types"
               " --fixed-strings --file-search-regex= --ignore-dir= --max-count= --one-device --case-sensitive --smart-case"
               " --all-text --invert-match --width= --filename-pattern= --list-file-types -iSsvwclLQoHa0 -A= -B= -C= -G= -m= --depth= --ignore= --nocolor --nogroup --nofilename --literal"
               " --files-with-matches --count --ignore-case --word-regexp", "data read*", instead="-g --filename-pattern", below="always", here=True),
    "ack": Synopsis("-fglLciSIvwQo1HhsrRnk --noenv -m= -A= -B= -C? -t= -T= --files-with-matches --files-without-matches --count --ignore-case"
                " --no-ignore-case --smart-case --invert-match --word-regexp --literal --passthru --max-count= --with-filename --no-filename"
                " --after-context= --before-context= --context? --print0 --nopager --group --nogroup --nocolor --color --flush --sort-files"
                " --show-types --recurse --no-recurse --type= --help-types", "data read*", instead="-f", below="always", here=True),
    "ugrep": Synopsis("-abcEFGHhIijkLlnoPqrRsTUuVvwxyz0 -A= -B= -C= -d= -D= -e= -f=< -g= -J= -K= -m= -O= -t= -Z? -# --text --bool"
                  " --byte-offset --count --color? --colour? --extended-regexp --regexp= --fixed-strings --basic-regexp --glob= --iglob="
                  " --with-filename --no-filename --heading --ignore-case --smart-case --include= --exclude= --exclude-dir="
                  " --include-dir= --files-with-matches --files-without-match --line-number --column-number --only-matching --perl-regexp"
                  " --quiet --silent --recursive --dereference-recursive --no-messages --sort? --invert-match --word-regexp --line-regexp"
                  " --max-count= --max-files= --after-context= --before-context= --context= --file-type= --file-extension= --fuzzy? --json"
                  " --csv --xml --tree --stats? --depth= --jobs= --null --decompress --ungroup --any-line --passthru",
                  "data read*", instead="-e -f --regexp", below="always", here=True, follows="-R --dereference-recursive"),
    "locate": Synopsis("-bcie0 -l= -r= --limit=", "data*", plain=False),
}  # fmt: skip

# find's words and how many arguments each takes. What is not here deletes, writes or runs.
FIND_WORDS: dict[str, int] = {
    **dict.fromkeys(
        ("-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-type", "-xtype", "-maxdepth",
         "-mindepth", "-size", "-mtime", "-mmin", "-atime", "-amin", "-ctime", "-cmin", "-perm", "-user", "-group",
         "-regex", "-iregex", "-regextype", "-links", "-inum", "-uid", "-gid", "-used", "-printf", "-lname",
         "-ilname", "-fstype", "-context"), 1),
    **dict.fromkeys(("-newer", "-anewer", "-cnewer", "-samefile", "-newermt", "-newerat", "-newerct"), 1),
    **dict.fromkeys(
        ("-empty", "-print", "-print0", "-ls", "-not", "!", "-o", "-or", "-a", "-and", "(", ")", ",", "-prune",
         "-quit", "-readable", "-writable", "-executable", "-true", "-false", "-mount", "-xdev", "-depth",
         "-daystart", "-nouser", "-nogroup", "-noleaf", "-warn", "-nowarn", "-noignore_readdir_race"), 0),
}  # fmt: skip
FIND_PATHS = {"-newer", "-anewer", "-cnewer", "-samefile"}
FIND_RUNS = {"-exec", "-execdir"}
LISTS_ALONE = {"-print0", "-print", "-printf", "-ls"}  # in place of the names that find prints by itself


def find_expression(texts: Sequence[str | None]) -> list[str | None]:
    """The words of the expression of a find, without the values of its tests: `-name -print0` prints nothing by itself.

    >>> find_expression(["find", "src", "-type", "f", "-name", "-print0", "-print"])
    ['-type', '-name', '-print']
    """
    at = next(
        (at for at, text in enumerate(texts) if at and (text or "")[:1] in ("-", "(", "!", ",")), len(texts)
    )
    found: list[str | None] = []
    while at < len(texts):
        found.append(texts[at])
        at += 1 + FIND_WORDS.get(texts[at] or "", 0)
    return found

"""Programs that look for text and for files."""

from __future__ import annotations

from toolcrib.command.programs.options import Synopsis

_CONTEXT = "-A= -B= -C= --after-context= --before-context= --context="
_GREP = Synopsis(
    "-EFGPivwxncolLqsHhabIrRzZTuyU -e= -f=< -m= -d= -D= -# --regexp= --file=< --ignore-case --no-ignore-case"
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

SYNOPSES: dict[str, Synopsis] = {
    **dict.fromkeys(("grep", "egrep", "fgrep"), _GREP),
    **dict.fromkeys(("zgrep", "zegrep"), Synopsis("-EFGivwxncolLqsHhab -e= -A= -B= -C= -m=", "data read*", instead="-e",
                                              plain=False)),
    "rg": Synopsis(
        "-ivwxnNcolFsSUPHIpqr0bab -e= -f=< -g= -t= -T= -m= -M= -d= -j= -E= -r= --regexp= --file=< --ignore-case"
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
        "-agisFpld0 -t= -e= -E= -d= -S= -j= -c= --absolute-path --glob --ignore-case --case-sensitive"
        " --fixed-strings --full-path --list-details --type= --extension= --exclude= --max-depth= --min-depth="
        " --exact-depth= --size= --threads= --color= --max-results= --print0 --changed-within= --changed-before="
        " --regex --relative-path",
        "data read*", contents=False,
        below="always", here=True,
    )),
    "ag": Synopsis("-iSsvwclLQoHa0 -A= -B= -C= -G= -m= --depth= --ignore= --nocolor --nogroup --nofilename --literal"
               " --files-with-matches --count --ignore-case --word-regexp", "data read*", below="always", here=True),
    "locate": Synopsis("-bcie0 -l= -r= --limit=", "data*", plain=False),
}  # fmt: skip

# find's words and how many arguments each takes. What is not here deletes, writes or runs.
FIND_WORDS: dict[str, int] = {
    **dict.fromkeys(
        ("-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-type", "-xtype", "-maxdepth",
         "-mindepth", "-size", "-mtime", "-mmin", "-atime", "-amin", "-ctime", "-cmin", "-perm", "-user", "-group",
         "-regex", "-iregex", "-regextype", "-links", "-inum", "-uid", "-gid", "-used", "-printf", "-lname",
         "-ilname", "-fstype"), 1),
    **dict.fromkeys(("-newer", "-anewer", "-cnewer", "-samefile", "-newermt", "-newerat", "-newerct"), 1),
    **dict.fromkeys(
        ("-empty", "-print", "-print0", "-ls", "-not", "!", "-o", "-or", "-a", "-and", "(", ")", ",", "-prune",
         "-quit", "-readable", "-writable", "-executable", "-true", "-false", "-mount", "-xdev", "-depth",
         "-daystart", "-nouser", "-nogroup", "-noleaf", "-warn", "-nowarn", "-noignore_readdir_race"), 0),
}  # fmt: skip
FIND_PATHS = {"-newer", "-anewer", "-cnewer", "-samefile"}
FIND_RUNS = {"-exec", "-execdir"}

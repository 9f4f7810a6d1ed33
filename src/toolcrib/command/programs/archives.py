"""Programs that pack and unpack, or look into packed files. Packers write, except with options to list, test or print."""

from __future__ import annotations

from collections.abc import Callable

from toolcrib.command.not_proved import NotProved
from toolcrib.command.programs.checks import (
    archive_member,
    local_archive,
    no_commands,
    plain_names,
    plain_words,
    seven_zip,
)
from toolcrib.command.programs.languages import tar, unzip
from toolcrib.command.programs.options import Arguments, Synopsis

_GZIP = "-cdfklqtvrnN123456789 -S= --stdout --to-stdout --decompress --uncompress --force --keep --list --quiet --test --verbose --no-name --name --fast --best --suffix= --recursive"
_BZIP2 = "-cdfkqtvsz123456789 --stdout --decompress --compress --force --keep --quiet --test --verbose --small --fast --best"
_XZ = (
    "-cdfklqtvz0123456789e -T= -S= -F= -M= -C= --stdout --to-stdout --decompress --uncompress --compress --force --keep --list --quiet --test"
    " --verbose --extreme --fast --best --threads= --suffix= --format= --check= --memlimit= --robot --single-stream --ignore-check"
)
_ZSTD = (
    "-cdfklqtv -# -T? -D=< --stdout --decompress --force --keep --list --quiet --test --verbose --threads= --ultra --fast? --long?"
    " --no-progress --single-thread --format= --check --no-check"
)
_OUT = "-c --stdout --to-stdout"
_LOOKS = "-l --list -t --test"
_GREP = (
    "-EFGivwxncolLqsHhab -e= -A= -B= -C= -m= -# --ignore-case --invert-match --word-regexp --line-regexp --count --only-matching"
    " --files-with-matches --files-without-match --line-number --with-filename --no-filename --extended-regexp --fixed-strings"
    " --basic-regexp --quiet --silent --no-messages --text --byte-offset --regexp= --max-count= --context= --after-context="
    " --before-context= --color? --colour? --label="
)
_DIFF = (
    "-l --paginate -abBcdeiNnpqstTuwyZ -C= -U= -I= -W= --brief --report-identical-files --context? --unified? --side-by-side --width= --ignore-case"
    " --ignore-all-space --ignore-space-change --ignore-blank-lines --text --color? --suppress-common-lines --minimal --normal"
)


def _packs(options: str, tells: str, operands: str = "read*") -> Synopsis:
    """The row of a program that replaces the files it is given.

    It only reads in three cases: it prints what it makes (`-c`), it lists or tests (an option in `tells`), or it is given no
    file and turns its input into its output.
    """
    filters = Synopsis(options, "", check=_not_recursive)
    telling = Synopsis(options, operands, needs=tells, reading=filters, check=_only_tells)
    printing = Synopsis(options, operands, needs=_OUT, reading=telling, check=_not_recursive)
    return Synopsis(options, "write*", "write", reading=printing)


def _not_recursive(found: Arguments) -> None:
    """Refuses `-r`: the program would print or replace every file below a folder."""
    if found.options & {"-r", "--recursive"}:
        raise NotProved("it takes all files below a folder")


def _only_tells(found: Arguments) -> None:
    """Refuses an option that packs or unpacks. It overrides an option that lists or tests, and so replaces files."""
    _not_recursive(found)
    if found.options & {"-d", "--decompress", "--uncompress", "-z", "--compress"}:
        raise NotProved("it replaces files")


def _two_files(found: Arguments) -> None:
    """Requires two names: `zdiff a.gz` compares `a.gz` with `a`, which the command does not name."""
    plain_names(found)
    if found.placed != 2:
        raise NotProved("a comparison with a file that is not named")


def _pages(found: Arguments) -> None:
    plain_names(found)
    no_commands(found)


def _packed_grep(check: Callable[[Arguments], None]) -> Synopsis:
    return Synopsis(_GREP, "data read*", instead="-e --regexp", check=check)


SYNOPSES: dict[str, Synopsis] = {
    "gzip": _packs(_GZIP, _LOOKS),
    **dict.fromkeys(("gunzip", "uncompress"), _packs(_GZIP, _LOOKS)),
    **dict.fromkeys(("bzip2", "bunzip2"), _packs(_BZIP2, "-t --test")),
    **dict.fromkeys(("xz", "unxz", "lzma", "unlzma"), _packs(_XZ, _LOOKS)),
    **dict.fromkeys(("zstd", "unzstd"), _packs(_ZSTD, _LOOKS)),
    **dict.fromkeys(("pigz", "unpigz"), _packs("-cdfkqtvlnN -p= -# --stdout --decompress --force --keep --quiet --test --verbose --list"
                                           " --processes=", _LOOKS)),
    **dict.fromkeys(("lz4", "unlz4"), _packs("-cdtqvf -# --stdout --decompress --test --quiet --verbose --list --force --best --fast?", "-t --test --list", "read")),
    "lzop": _packs("-cdtlqvIfN -# --stdout --decompress --test --list --quiet --verbose --info --force", f"{_LOOKS} -I --info"),
    "lzip": _packs("-cdtlqvfk0123456789 --stdout --decompress --test --list --quiet --verbose --force --keep", _LOOKS),
    "brotli": _packs("-cdtfkv0123456789 -q= -w= --stdout --decompress --test --force --keep --verbose --quality= --best", "-t --test"),
    **dict.fromkeys(("zcat", "gzcat"), Synopsis("-fklqtv --force --list --quiet --test --verbose --suffix= -S=")),
    "bzcat": Synopsis("-fkqsv --force --keep --quiet --small --verbose"),
    **dict.fromkeys(("xzcat", "lzcat"), Synopsis("-fkqv -T= -F= --force --keep --quiet --verbose --threads= --format= --single-stream")),
    "zstdcat": Synopsis("-fkqv -D=< -T? --force --keep --quiet --verbose"),
    "lz4cat": Synopsis("-fqv", "read"),
    "funzip": Synopsis("", "read"),
    **dict.fromkeys(("zgrep", "zegrep", "zfgrep", "xzgrep", "xzegrep", "xzfgrep", "lzgrep"), _packed_grep(plain_names)),
    **dict.fromkeys(("bzgrep", "bzegrep", "bzfgrep"), _packed_grep(plain_words)),
    # less and more behind what unpacks
    **dict.fromkeys(("zless", "zmore", "bzless", "bzmore", "xzless", "xzmore", "zstdless"), Synopsis("", check=_pages)),
    **dict.fromkeys(("zdiff", "zcmp", "bzdiff", "bzcmp", "xzdiff", "xzcmp", "lzdiff"),
                    Synopsis(_DIFF, "read read", check=_two_files, below="always")),
    "tar": Synopsis(
        "-tvzjJZaRi -f=< -C=< -H= --list --file=< --directory=< --gzip --gunzip --ungzip --bzip2 --xz --lzma --lzip --zstd --compress"
        " --auto-compress --verbose --exclude= --wildcards --no-wildcards --wildcards-match-slash --ignore-case --anchored --no-anchored"
        " --full-time --utc --numeric-owner --block-number --strip-components= --show-transformed-names --force-local --quoting-style="
        " --totals? --format= --occurrence? --ignore-zeros --no-recursion --show-stored-names --warning=",
        "data*", check=tar),
    "cpio": Synopsis("-tivnBcd -F=< -H= -C= --list --extract --verbose --numeric-uid-gid --file=< --format= --quiet --dot", "data*",
                 needs="-t --list", check=local_archive),
    "unzip": Synopsis("-lvZ1qtpzcCaLs -P=", "read data*", check=unzip),
    "zipnote": Synopsis("-hqvL", "read"),
    "zipinfo": Synopsis("-12smlvhtTzMCu", "read data*"),
    "ar": Synopsis("", "data read data*", check=archive_member),
    **dict.fromkeys(("7z", "7za", "7zr"), Synopsis("-slt! -ba! -bd! -r? -sccUTF-8! -p?", "data read data*", check=seven_zip)),
}  # fmt: skip

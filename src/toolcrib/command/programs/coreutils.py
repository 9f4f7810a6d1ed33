"""Programs that show, count, sort and compare."""

from __future__ import annotations

from toolcrib.command.programs.languages import awk, date, jq, man, printf, ps, sed, tar, test, unzip
from toolcrib.command.programs.options import Usage

USAGES: dict[str, Usage] = {
    # names and sizes
    "ls": Usage(
        "-aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1 -I= -w= -T= --all --almost-all --author --escape --directory"
        " --classify? --color? --group-directories-first --no-group --human-readable --si --inode --ignore="
        " --hide= --numeric-uid-gid --literal --quote-name --reverse --recursive --size --sort= --time="
        " --time-style= --full-time --width= --format= --indicator-style= --dereference --kibibytes --zero",
        contents=False,
        below="recursive", here=True,
    ),
    "tree": Usage(
        "-adfhipsugDFACNQrStUvJX -L= -P= -I= --dirsfirst --filesfirst --noreport --filelimit= --prune"
        " --gitignore --sort= --du --si --matchdirs --ignore-case --charset= --timefmt= --inodes --device",
        contents=False,
        below="always", here=True,
    ),
    "du": Usage(
        "-abchklmPSsx0 -d= -B= -t= --all --apparent-size --block-size= --bytes --total --human-readable"
        " --max-depth= --summarize --separate-dirs --one-file-system --exclude= --threshold= --time? --si",
        contents=False,
        below="always", here=True,
    ),
    "df": Usage("-ahHiklmPT -B= -t= -x= --human-readable --all --total --type= --inodes --output?", contents=False),
    "stat": Usage("-Lft -c= --dereference --terse --format= --printf= --file-system", contents=False),
    "file": Usage("-bhiLNrsv0k -F= --brief --mime --mime-type --mime-encoding --dereference --no-dereference -P=",
                 contents=False),
    "basename": Usage("-az -s= --multiple --suffix= --zero", "data*", contents=False),
    "dirname": Usage("-z --zero", "data*"),
    "pwd": Usage("-LP", ""),
    "cd": Usage("", "cd", contents=False),
    "realpath": Usage("-emLPqsz --relative-to=< --relative-base=< --canonicalize-existing --canonicalize-missing"
                     " --no-symlinks --quiet", contents=False),
    "readlink": Usage("-efmnqsvz --canonicalize --canonicalize-existing --no-newline", contents=False),
    "which": Usage("-as", "data*"),
    "whereis": Usage("-bms", "data*"),
    "nproc": Usage("--all --ignore=", ""),
    "uname": Usage("-asnrvmpio --all --kernel-name --kernel-release --machine", ""),
    "arch": Usage("", ""),
    "whoami": Usage("", ""),
    "id": Usage("-agGnruz --user --group --groups --name", "data"),
    "groups": Usage("", "data*"),
    "hostname": Usage("-sfidAIy", ""),
    "uptime": Usage("-ps --pretty --since", ""),
    "free": Usage("-bkmghtlw --human --mega --giga --total", ""),
    "tty": Usage("-s", ""),
    "ps": Usage("-AedfFlwHL -p= -o= --no-headers --forest --sort=", "data*", check=ps),
    "man": Usage("-fkw", "data*", check=man),
    "locale": Usage("-am", "data*"),
    "date": Usage("-uR -d= -I? --date= --utc --universal --rfc-email --rfc-3339= --iso-8601? -r=< --reference=<",
                 "data", check=date),
    "cal": Usage("-1 -3 -m -y", "data*"),
    # contents
    "cat": Usage("-AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs"
                " --show-nonprinting"),
    "tac": Usage("-br -s= --before --regex --separator="),
    "rev": Usage("-0"),
    "nl": Usage("-p -b= -d= -f= -h= -i= -l= -n= -s= -v= -w= --body-numbering= --number-format= --number-width="
               " --number-separator= --starting-line-number= --line-increment="),
    "head": Usage("-qvz -n= -c= -# --lines= --bytes= --quiet --silent --verbose --zero-terminated"),
    "tail": Usage("-qvz -n= -c= -# --lines= --bytes= --quiet --silent --verbose --zero-terminated"),
    "wc": Usage("-clmwL --bytes --chars --lines --words --max-line-length --total="),
    "od": Usage("-abcdfhiloxsv -A= -j= -N= -t= -w= --address-radix= --skip-bytes= --read-bytes= --format= --width?"),
    "hexdump": Usage("-bcCdovx -n= -s= --canonical --length= --skip= --no-squeezing"),
    "xxd": Usage("-abeEipu -c= -g= -l= -s= -o= --bits --plain --cols= --len= --seek=", "read"),
    "strings": Usage("-afwT -n= -t= -e= --all --bytes= --radix= --encoding="),
    "base64": Usage("-diD -w= --decode --ignore-garbage --wrap=", "read"),
    "base32": Usage("-di -w= --decode --ignore-garbage --wrap=", "read"),
    "basenc": Usage("-di -w= --decode --ignore-garbage --wrap= --base64 --base64url --base32 --base16 --base2msbf",
                   "read"),
    "cksum": Usage("-a= --algorithm= --untagged --tag"),
    **dict.fromkeys(
        ("md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum"),
        Usage("-btz --binary --text --tag --zero"),
    ),
    "sum": Usage("-rs"),
    "less": Usage("-NSRFXiIeEMmnrs", plain=False),
    "more": Usage("-dfpcsu -#", plain=False),
    "bat": Usage("-pnA -l= -r= --plain --number --language= --line-range= --style= --theme= --color="
                " --decorations= --wrap= --highlight-line=", plain=False),
    # made of contents
    "echo": Usage("", "data*", inert=True),
    "printf": Usage("", "data*", inert=True, check=printf),
    "true": Usage("", "data*"),
    "false": Usage("", "data*"),
    ":": Usage("", "data*", inert=True),
    "seq": Usage("-w -s= -f= -# --equal-width --separator= --format=", "data*"),
    "yes": Usage("", "data*"),
    "sleep": Usage("", "data*"),
    "expr": Usage("", "data*"),
    "test": Usage("", "data*", inert=True, contents=False, check=test),
    "factor": Usage("", "data*"),
    "sort": Usage(
        "-bdfgiMhnRrVcCmsuz -k= -t= --ignore-leading-blanks --dictionary-order --ignore-case --numeric-sort"
        " --general-numeric-sort --human-numeric-sort --month-sort --random-sort --reverse --version-sort"
        " --check? --merge --stable --unique --zero-terminated --key= --field-separator= --sort= --parallel="
        " -S= --buffer-size="
    ),
    "uniq": Usage("-cdDiuz -f= -s= -w= --count --repeated --all-repeated? --skip-fields= --ignore-case"
                 " --skip-chars= --unique --check-chars= --group?", "read"),
    "cut": Usage("-nsz -b= -c= -d= -f= --bytes= --characters= --delimiter= --fields= --complement"
                " --only-delimited --output-delimiter="),
    "paste": Usage("-sz -d= --delimiters= --serial"),
    "tr": Usage("-cCdst --complement --delete --squeeze-repeats --truncate-set1", "data data"),
    "fold": Usage("-bs -w= --bytes --spaces --width="),
    "fmt": Usage("-cstu -w= -p= -# --width= --split-only --uniform-spacing"),
    "column": Usage("-ntxeJ -s= -o= -c= -N= --table --separator= --output-separator= --json"),
    "expand": Usage("-i -t= --initial --tabs="),
    "unexpand": Usage("-a -t= --all --tabs="),
    "comm": Usage("-123z --check-order --nocheck-order --output-delimiter= --total", "read read"),
    "join": Usage("-i -a= -e= -o= -t= -v= -1= -2= -j= --header --check-order --nocheck-order", "read read"),
    "cmp": Usage("-bls -i= -n= --print-bytes --verbose --silent --quiet --bytes= --ignore-initial=", "read read"),
    "diff": Usage(
        "-abBcdeEiNnprqstTuwyZ -C= -U= -I= -x= -W= -F= -L= --brief --report-identical-files --context? --unified?"
        " --side-by-side --width= --recursive --new-file --ignore-case --ignore-all-space --ignore-space-change"
        " --ignore-blank-lines --text --color? --exclude= --label= --strip-trailing-cr --suppress-common-lines"
        " --no-dereference --minimal --show-c-function",
        "read read",
        below="always", here=True,
    ),
    "diffstat": Usage("-bCklmqruv -p= -w= -n="),
    "tsort": Usage(""),
    "iconv": Usage("-c -f= -t= --from-code= --to-code="),
    "shuf": Usage("-eirz -i= -n= --echo --input-range= --head-count= --repeat"),
    "split": Usage("-d -a= -b= -l= -n=", "read data", effect="write"),
    # small languages
    "sed": Usage("-nErsuz --quiet --silent --regexp-extended --separate --unbuffered -e= --expression= --posix"
                " --null-data", "data read*", instead="-e --expression", check=sed),
    "awk": Usage("-F= -v=", "data awk*", check=awk),
    "gawk": Usage("-F= -v=", "data awk*", check=awk),
    "mawk": Usage("-F= -v=", "data awk*", check=awk),
    "jq": Usage(
        "-rcnsejSMCaR --raw-output --compact-output --null-input --slurp --exit-status --join-output --sort-keys"
        " --monochrome-output --color-output --ascii-output --raw-input --tab --indent= --arg== --argjson==",
        "data read*",
        check=jq,
    ),
    "tar": Usage("-tvzjJZa -f=< --list --file=< --gzip --bzip2 --xz --zstd --verbose --exclude= --wildcards",
                "data*", check=tar),
    "unzip": Usage("-lvZ1q", "read data*", check=unzip),
    "zipinfo": Usage("-12smlvhtT", "read data*"),
    **dict.fromkeys(("zcat", "bzcat", "xzcat", "zstdcat"), Usage("-f")),
}  # fmt: skip

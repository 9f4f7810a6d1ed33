"""Programs that show, count, sort and compare."""

from __future__ import annotations

from toolcrib.command.programs.languages import (
    awk,
    character_sets,
    date,
    jq,
    man,
    no_argument_file,
    printf,
    ps,
    sed,
    tar,
    test,
    unzip,
)  # fmt: skip
from toolcrib.command.programs.options import Synopsis

SYNOPSES: dict[str, Synopsis] = {
    # names and sizes
    "ls": Synopsis(
        "-aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1 -I= -w= -T= --all --almost-all --author --escape --directory"
        " --classify? --color? --group-directories-first --no-group --human-readable --si --inode --ignore="
        " --hide= --numeric-uid-gid --literal --quote-name --reverse --recursive --size --sort= --time="
        " --time-style= --full-time --width= --format= --indicator-style= --dereference --kibibytes --zero",
        contents=False,
        below="recursive", here=True,
    ),
    "tree": Synopsis(
        "-adfhipsugDFACNQrStUvJX -L= -P= -I= --dirsfirst --filesfirst --noreport --filelimit= --prune"
        " --gitignore --sort= --du --si --matchdirs --ignore-case --charset= --timefmt= --inodes --device",
        contents=False,
        below="always", here=True,
    ),
    "du": Synopsis(
        "-abchklmPSsx0 -d= -B= -t= --all --apparent-size --block-size= --bytes --total --human-readable"
        " --max-depth= --summarize --separate-dirs --one-file-system --exclude= --threshold= --time? --si",
        contents=False,
        below="always", here=True,
    ),
    "df": Synopsis("-ahHiklmPT -B= -t= -x= --human-readable --all --total --type= --inodes --output?", contents=False),
    "stat": Synopsis("-Lft -c= --dereference --terse --format= --printf= --file-system", contents=False,
                 opens=False),
    "file": Synopsis("-bhiLNrsv0k -F= --brief --mime --mime-type --mime-encoding --dereference --no-dereference -P=",
                 contents=False, opens=False),
    "basename": Synopsis("-az -s= --multiple --suffix= --zero", "data*", contents=False),
    "dirname": Synopsis("-z --zero", "data*"),
    "pwd": Synopsis("-LP", ""),
    "cd": Synopsis("", "cd", contents=False),
    "realpath": Synopsis("-emLPqsz --relative-to=< --relative-base=< --canonicalize-existing --canonicalize-missing"
                     " --no-symlinks --quiet", contents=False, opens=False),
    "readlink": Synopsis("-efmnqsvz --canonicalize --canonicalize-existing --no-newline", contents=False, opens=False),
    "which": Synopsis("-as", "data*"),
    "whereis": Synopsis("-bms", "data*"),
    "nproc": Synopsis("--all --ignore=", ""),
    "uname": Synopsis("-asnrvmpio --all --kernel-name --kernel-release --machine", ""),
    "arch": Synopsis("", ""),
    "whoami": Synopsis("", ""),
    "id": Synopsis("-agGnruz --user --group --groups --name", "data"),
    "groups": Synopsis("", "data*"),
    "hostname": Synopsis("-sfidAIy", ""),
    "uptime": Synopsis("-ps --pretty --since", ""),
    "free": Synopsis("-bkmghtlw --human --mega --giga --total", ""),
    "tty": Synopsis("-s", ""),
    "ps": Synopsis("-AedfFlwHL -p= -o= --no-headers --forest --sort=", "data*", check=ps),
    "man": Synopsis("-fkw", "data*", check=man),
    "locale": Synopsis("-am", "data*"),
    "date": Synopsis("-uR -d= -I? --date= --utc --universal --rfc-email --rfc-3339= --iso-8601? -r=< --reference=<",
                 "data", check=date),
    "cal": Synopsis("-1 -3 -m -y", "data*"),
    # contents
    "cat": Synopsis("-AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs"
                " --show-nonprinting"),
    "tac": Synopsis("-br -s= --before --regex --separator="),
    "rev": Synopsis("-0"),
    "nl": Synopsis("-p -b= -d= -f= -h= -i= -l= -n= -s= -v= -w= --body-numbering= --number-format= --number-width="
               " --number-separator= --starting-line-number= --line-increment="),
    "head": Synopsis("-qvz -n= -c= -# --lines= --bytes= --quiet --silent --verbose --zero-terminated"),
    "tail": Synopsis("-qvz -n= -c= -# --lines= --bytes= --quiet --silent --verbose --zero-terminated"),
    "wc": Synopsis("-clmwL --bytes --chars --lines --words --max-line-length --total="),
    "od": Synopsis("-abcdfhiloxsv -A= -j= -N= -t= -w= --address-radix= --skip-bytes= --read-bytes= --format= --width?"),
    "hexdump": Synopsis("-bcCdovx -n= -s= --canonical --length= --skip= --no-squeezing"),
    "xxd": Synopsis("-abeEipu -c= -g= -l= -s= -o= --bits --plain --cols= --len= --seek=", "read"),
    "strings": Synopsis("-afw -n= -t= -e= -T= --all --bytes= --radix= --encoding=", check=no_argument_file),
    "base64": Synopsis("-diD -w= --decode --ignore-garbage --wrap=", "read"),
    "base32": Synopsis("-di -w= --decode --ignore-garbage --wrap=", "read"),
    "basenc": Synopsis("-di -w= --decode --ignore-garbage --wrap= --base64 --base64url --base32 --base16 --base2msbf",
                   "read"),
    "cksum": Synopsis("-a= --algorithm= --untagged --tag"),
    **dict.fromkeys(
        ("md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum"),
        Synopsis("-btz --binary --text --tag --zero"),
    ),
    "sum": Synopsis("-rs"),
    "less": Synopsis("-NSRFXiIeEMmnrs", plain=False),
    "more": Synopsis("-dfpcsu -#", plain=False),
    "bat": Synopsis("-pnA -l= -r= --plain --number --language= --line-range= --style= --theme= --color="
                " --decorations= --wrap= --highlight-line=", plain=False),
    # made of contents
    "echo": Synopsis("", "data*", inert=True),
    "printf": Synopsis("", "data*", inert=True, check=printf),
    "true": Synopsis("", "data*"),
    "false": Synopsis("", "data*"),
    ":": Synopsis("", "data*", inert=True),
    "seq": Synopsis("-w -s= -f= -# --equal-width --separator= --format=", "data*"),
    "yes": Synopsis("", "data*"),
    "sleep": Synopsis("", "data*"),
    "expr": Synopsis("", "data*"),
    "test": Synopsis("", "data*", inert=True, contents=False, check=test, opens=False),
    "factor": Synopsis("", "data*"),
    "sort": Synopsis(
        "-bdfgiMhnRrVcCmsuz -k= -t= --ignore-leading-blanks --dictionary-order --ignore-case --numeric-sort"
        " --general-numeric-sort --human-numeric-sort --month-sort --random-sort --reverse --version-sort"
        " --check? --merge --stable --unique --zero-terminated --key= --field-separator= --sort= --parallel="
        " -S= --buffer-size="
    ),
    "uniq": Synopsis("-cdDiuz -f= -s= -w= --count --repeated --all-repeated? --skip-fields= --ignore-case"
                 " --skip-chars= --unique --check-chars= --group?", "read"),
    "cut": Synopsis("-nsz -b= -c= -d= -f= --bytes= --characters= --delimiter= --fields= --complement"
                " --only-delimited --output-delimiter="),
    "paste": Synopsis("-sz -d= --delimiters= --serial"),
    "tr": Synopsis("-cCdst --complement --delete --squeeze-repeats --truncate-set1", "data data"),
    "fold": Synopsis("-bs -w= --bytes --spaces --width="),
    "fmt": Synopsis("-cstu -w= -p= -# --width= --split-only --uniform-spacing"),
    "column": Synopsis("-ntxeJ -s= -o= -c= -N= --table --separator= --output-separator= --json"),
    "expand": Synopsis("-i -t= --initial --tabs="),
    "unexpand": Synopsis("-a -t= --all --tabs="),
    "comm": Synopsis("-123z --check-order --nocheck-order --output-delimiter= --total", "read read"),
    "join": Synopsis("-i -a= -e= -o= -t= -v= -1= -2= -j= --header --check-order --nocheck-order", "read read"),
    "cmp": Synopsis("-bls -i= -n= --print-bytes --verbose --silent --quiet --bytes= --ignore-initial=", "read read"),
    "diff": Synopsis(
        "-abBcdeEiNnprqstTuwyZ -C= -U= -I= -x= -W= -F= -L= --brief --report-identical-files --context? --unified?"
        " --side-by-side --width= --recursive --new-file --ignore-case --ignore-all-space --ignore-space-change"
        " --ignore-blank-lines --text --color? --exclude= --label= --strip-trailing-cr --suppress-common-lines"
        " --no-dereference --minimal --show-c-function",
        "read read",
        below="always", here=True, follows="-r --recursive",
    ),
    "diffstat": Synopsis("-bCklmqruv -p= -w= -n="),
    "tsort": Synopsis(""),
    "iconv": Synopsis("-c -l -s -f= -t= --from-code= --to-code= --list --silent", check=character_sets),
    "shuf": Synopsis("-eirz -i= -n= --echo --input-range= --head-count= --repeat"),
    "split": Synopsis("-d -a= -b= -l= -n=", "read write", effect="write"),
    # small languages
    "sed": Synopsis("-nErsuz --quiet --silent --regexp-extended --separate --unbuffered -e= --expression= --posix"
                " --null-data", "data read*", instead="-e --expression", check=sed),
    "awk": Synopsis("-F= -v=", "data awk*", check=awk),
    "gawk": Synopsis("-F= -v=", "data awk*", check=awk),
    "mawk": Synopsis("-F= -v=", "data awk*", check=awk),
    "jq": Synopsis(
        "-rcnsejSMCaR --raw-output --compact-output --null-input --slurp --exit-status --join-output --sort-keys"
        " --monochrome-output --color-output --ascii-output --raw-input --tab --indent= --arg== --argjson==",
        "data read*",
        check=jq,
    ),
    "tar": Synopsis("-tvzjJZa -f=< --list --file=< --gzip --bzip2 --xz --zstd --verbose --exclude= --wildcards",
                "data*", check=tar),
    "unzip": Synopsis("-lvZ1q", "read data*", check=unzip),
    "zipinfo": Synopsis("-12smlvhtT", "read data*"),
    **dict.fromkeys(("zcat", "bzcat", "xzcat", "zstdcat"), Synopsis("-f")),
}  # fmt: skip

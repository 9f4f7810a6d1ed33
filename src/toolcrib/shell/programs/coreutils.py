"""Programs that show, count, sort and compare."""

from __future__ import annotations

from toolcrib.shell.options import Form
from toolcrib.shell.programs.languages import awk, date, jq, man, printf, ps, sed, tar, test, unzip

FORMS: dict[str, Form] = {
    # names and sizes
    "ls": Form(
        "-aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1 -I= -w= -T= --all --almost-all --author --escape --directory"
        " --classify? --color? --group-directories-first --no-group --human-readable --si --inode --ignore="
        " --hide= --numeric-uid-gid --literal --quote-name --reverse --recursive --size --sort= --time="
        " --time-style= --full-time --width= --format= --indicator-style= --dereference --kibibytes --zero",
        contents=False,
    ),
    "tree": Form(
        "-adfhipsugDFACNQrStUvJX -L= -P= -I= --dirsfirst --filesfirst --noreport --filelimit= --prune"
        " --gitignore --sort= --du --si --matchdirs --ignore-case --charset= --timefmt= --inodes --device",
        contents=False,
    ),
    "du": Form(
        "-abchklmPSsx0 -d= -B= -t= --all --apparent-size --block-size= --bytes --total --human-readable"
        " --max-depth= --summarize --separate-dirs --one-file-system --exclude= --threshold= --time? --si",
        contents=False,
    ),
    "df": Form("-ahHiklmPT -B= -t= -x= --human-readable --all --total --type= --inodes --output?", contents=False),
    "stat": Form("-Lft -c= --dereference --terse --format= --printf= --file-system", contents=False),
    "file": Form("-bhiLNrsv0k -F= --brief --mime --mime-type --mime-encoding --dereference --no-dereference -P=",
                 contents=False),
    "basename": Form("-az -s= --multiple --suffix= --zero", "data*", contents=False),
    "dirname": Form("-z --zero", "data*"),
    "pwd": Form("-LP", ""),
    "cd": Form("", "cd", contents=False),
    "realpath": Form("-emLPqsz --relative-to=< --relative-base=< --canonicalize-existing --canonicalize-missing"
                     " --no-symlinks --quiet", contents=False),
    "readlink": Form("-efmnqsvz --canonicalize --canonicalize-existing --no-newline", contents=False),
    "which": Form("-as", "data*"),
    "whereis": Form("-bms", "data*"),
    "nproc": Form("--all --ignore=", ""),
    "uname": Form("-asnrvmpio --all --kernel-name --kernel-release --machine", ""),
    "arch": Form("", ""),
    "whoami": Form("", ""),
    "id": Form("-agGnruz --user --group --groups --name", "data"),
    "groups": Form("", "data*"),
    "hostname": Form("-sfidAIy", ""),
    "uptime": Form("-ps --pretty --since", ""),
    "free": Form("-bkmghtlw --human --mega --giga --total", ""),
    "tty": Form("-s", ""),
    "ps": Form("-AedfFlwHL -p= -o= --no-headers --forest --sort=", "data*", check=ps),
    "man": Form("-fkw", "data*", check=man),
    "locale": Form("-am", "data*"),
    "date": Form("-uR -d= -I? --date= --utc --universal --rfc-email --rfc-3339= --iso-8601? -r=< --reference=<",
                 "data", check=date),
    "cal": Form("-1 -3 -m -y", "data*"),
    # contents
    "cat": Form("-AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs"
                " --show-nonprinting"),
    "tac": Form("-br -s= --before --regex --separator="),
    "rev": Form("-0"),
    "nl": Form("-p -b= -d= -f= -h= -i= -l= -n= -s= -v= -w= --body-numbering= --number-format= --number-width="
               " --number-separator= --starting-line-number= --line-increment="),
    "head": Form("-qvz -n= -c= -# --lines= --bytes= --quiet --silent --verbose --zero-terminated"),
    "tail": Form("-qvz -n= -c= -# --lines= --bytes= --quiet --silent --verbose --zero-terminated"),
    "wc": Form("-clmwL --bytes --chars --lines --words --max-line-length --total="),
    "od": Form("-abcdfhiloxsv -A= -j= -N= -t= -w= --address-radix= --skip-bytes= --read-bytes= --format= --width?"),
    "hexdump": Form("-bcCdovx -n= -s= --canonical --length= --skip= --no-squeezing"),
    "xxd": Form("-abeEipu -c= -g= -l= -s= -o= --bits --plain --cols= --len= --seek=", "read"),
    "strings": Form("-afwT -n= -t= -e= --all --bytes= --radix= --encoding="),
    "base64": Form("-diD -w= --decode --ignore-garbage --wrap=", "read"),
    "base32": Form("-di -w= --decode --ignore-garbage --wrap=", "read"),
    "basenc": Form("-di -w= --decode --ignore-garbage --wrap= --base64 --base64url --base32 --base16 --base2msbf",
                   "read"),
    "cksum": Form("-a= --algorithm= --untagged --tag"),
    **dict.fromkeys(
        ("md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum"),
        Form("-btz --binary --text --tag --zero"),
    ),
    "sum": Form("-rs"),
    "less": Form("-NSRFXiIeEMmnrs", plain=False),
    "more": Form("-dfpcsu -#", plain=False),
    "bat": Form("-pnA -l= -r= --plain --number --language= --line-range= --style= --theme= --color="
                " --decorations= --wrap= --highlight-line=", plain=False),
    # made of contents
    "echo": Form("", "data*", inert=True),
    "printf": Form("", "data*", inert=True, check=printf),
    "true": Form("", "data*"),
    "false": Form("", "data*"),
    ":": Form("", "data*", inert=True),
    "seq": Form("-w -s= -f= -# --equal-width --separator= --format=", "data*"),
    "yes": Form("", "data*"),
    "sleep": Form("", "data*"),
    "expr": Form("", "data*"),
    "test": Form("", "data*", inert=True, contents=False, check=test),
    "factor": Form("", "data*"),
    "sort": Form(
        "-bdfgiMhnRrVcCmsuz -k= -t= --ignore-leading-blanks --dictionary-order --ignore-case --numeric-sort"
        " --general-numeric-sort --human-numeric-sort --month-sort --random-sort --reverse --version-sort"
        " --check? --merge --stable --unique --zero-terminated --key= --field-separator= --sort= --parallel="
        " -S= --buffer-size="
    ),
    "uniq": Form("-cdDiuz -f= -s= -w= --count --repeated --all-repeated? --skip-fields= --ignore-case"
                 " --skip-chars= --unique --check-chars= --group?", "read"),
    "cut": Form("-nsz -b= -c= -d= -f= --bytes= --characters= --delimiter= --fields= --complement"
                " --only-delimited --output-delimiter="),
    "paste": Form("-sz -d= --delimiters= --serial"),
    "tr": Form("-cCdst --complement --delete --squeeze-repeats --truncate-set1", "data data"),
    "fold": Form("-bs -w= --bytes --spaces --width="),
    "fmt": Form("-cstu -w= -p= -# --width= --split-only --uniform-spacing"),
    "column": Form("-ntxeJ -s= -o= -c= -N= --table --separator= --output-separator= --json"),
    "expand": Form("-i -t= --initial --tabs="),
    "unexpand": Form("-a -t= --all --tabs="),
    "comm": Form("-123z --check-order --nocheck-order --output-delimiter= --total", "read read"),
    "join": Form("-i -a= -e= -o= -t= -v= -1= -2= -j= --header --check-order --nocheck-order", "read read"),
    "cmp": Form("-bls -i= -n= --print-bytes --verbose --silent --quiet --bytes= --ignore-initial=", "read read"),
    "diff": Form(
        "-abBcdeEiNnprqstTuwyZ -C= -U= -I= -x= -W= -F= -L= --brief --report-identical-files --context? --unified?"
        " --side-by-side --width= --recursive --new-file --ignore-case --ignore-all-space --ignore-space-change"
        " --ignore-blank-lines --text --color? --exclude= --label= --strip-trailing-cr --suppress-common-lines"
        " --no-dereference --minimal --show-c-function",
        "read read",
    ),
    "diffstat": Form("-bCklmqruv -p= -w= -n="),
    "tsort": Form(""),
    "iconv": Form("-c -f= -t= --from-code= --to-code="),
    "shuf": Form("-eirz -i= -n= --echo --input-range= --head-count= --repeat"),
    "split": Form("-d -a= -b= -l= -n=", "read data", effect="write"),
    # small languages
    "sed": Form("-nErsuz --quiet --silent --regexp-extended --separate --unbuffered -e= --expression= --posix"
                " --null-data", "data read*", instead="-e --expression", check=sed),
    "awk": Form("-F= -v=", "data awk*", check=awk),
    "gawk": Form("-F= -v=", "data awk*", check=awk),
    "mawk": Form("-F= -v=", "data awk*", check=awk),
    "jq": Form(
        "-rcnsejSMCaR --raw-output --compact-output --null-input --slurp --exit-status --join-output --sort-keys"
        " --monochrome-output --color-output --ascii-output --raw-input --tab --indent= --arg== --argjson==",
        "data read*",
        check=jq,
    ),
    "tar": Form("-tvzjJZa -f=< --list --file=< --gzip --bzip2 --xz --zstd --verbose --exclude= --wildcards",
                "data*", check=tar),
    "unzip": Form("-lvZ1q", "read data*", check=unzip),
    "zipinfo": Form("-12smlvhtT", "read data*"),
    **dict.fromkeys(("zcat", "bzcat", "xzcat", "zstdcat"), Form("-f")),
}  # fmt: skip

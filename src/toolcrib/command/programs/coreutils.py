"""Programs that show, count, sort and compare."""

from __future__ import annotations

from toolcrib.command.programs.checks import no_argument_file, program_names, terminal_queries
from toolcrib.command.programs.languages import (
    any_awk,
    awk,
    character_sets,
    date,
    exit_status,
    jq,
    man,
    printf,
    ps,
    sed,
    test,
)  # fmt: skip
from toolcrib.command.programs.options import Synopsis

SYNOPSES: dict[str, Synopsis] = {
    # names and sizes
    **dict.fromkeys(("ls", "dir", "vdir"), Synopsis(
        "-D --block-size= --ignore-backups --file-type --dereference-command-line "
        "--dereference-command-line-symlink-to-dir --hyperlink? --hide-control-chars --show-control-chars "
        "--quoting-style= --tabsize= --context --dired "
        "-aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1 -I= -w= -T= --all --almost-all --author --escape --directory"
        " --classify? --color? --group-directories-first --no-group --human-readable --si --inode --ignore="
        " --hide= --numeric-uid-gid --literal --quote-name --reverse --recursive --size --sort= --time="
        " --time-style= --full-time --width= --format= --indicator-style= --dereference --kibibytes --zero",
        contents=False,
        below="recursive", here=True,
    )),
    "tree": Synopsis(
        "-lxqcn -H= -T= --metafirst --nolinks --noreport --gitfile=< --info --hintro=< --houtro=< "
        "-adfhipsugDFACNQrStUvJX -L= -P= -I= --dirsfirst --filesfirst --noreport --filelimit= --prune"
        " --gitignore --sort= --du --si --matchdirs --ignore-case --charset= --timefmt= --inodes --device",
        contents=False,
        below="always", here=True, clusters="next",
    ),
    "du": Synopsis(
        "-DHL --null --dereference-args --inodes --dereference --count-links --no-dereference --time-style= -X=< "
        "--exclude-from=< "
        "-abchklmPSsx0 -d= -B= -t= --all --apparent-size --block-size= --bytes --total --human-readable"
        " --max-depth= --summarize --separate-dirs --one-file-system --exclude= --threshold= --time? --si",
        contents=False,
        below="always", here=True,
    ),
    "df": Synopsis(
        "-v --block-size= --si --local --no-sync --portability --print-type --exclude-type= "
        "-ahHiklmPT -B= -t= -x= --human-readable --all --total --type= --inodes --output?", contents=False),
    "stat": Synopsis(
        "--cached= "
        "-Lft -c= --dereference --terse --format= --printf= --file-system", contents=False,
                 opens=False),
    "file": Synopsis(
        "-cnEld -e= --exclude= --exclude-quiet= --separator= "
        "--apple --extension --keep-going --list --no-buffer --no-pad --print0 --parameter= --raw --special-files "
        "--debug "
        "-bhiLNrsv0k -F= --brief --mime --mime-type --mime-encoding --dereference --no-dereference -P=",
                 contents=False, opens=False),
    "basename": Synopsis("-az -s= --multiple --suffix= --zero", "data*", contents=False),
    "dirname": Synopsis("-z --zero", "data*"),
    "pwd": Synopsis(
        "--logical --physical "
        "-LP", ""),
    "cd": Synopsis("", "cd", contents=False),
    "realpath": Synopsis(
        "--logical --physical --strip --zero --canonicalize "
        "-emLPqsz --relative-to=< --relative-base=< --canonicalize-existing --canonicalize-missing"
                     " --no-symlinks --quiet", contents=False, opens=False),
    "readlink": Synopsis(
        "--canonicalize-missing --quiet --silent --verbose --zero "
        "-efmnqsvz --canonicalize --canonicalize-existing --no-newline", contents=False, opens=False),
    "which": Synopsis(
        "--all "
        "-as", "data*"),
    "whereis": Synopsis("-lubmsBMSf", "data*"),
    "type": Synopsis("-afptP", "data*", check=program_names),
    "command": Synopsis("", ""),  # with words it runs another, or looks for one
    "nice": Synopsis("", ""),  # tells its own priority
    "nproc": Synopsis("--all --ignore=", ""),
    "uname": Synopsis(
        "--nodename --kernel-version --processor --hardware-platform --operating-system "
        "-asnrvmpio --all --kernel-name --kernel-release --machine", ""),
    "arch": Synopsis("", ""),
    "whoami": Synopsis("", ""),
    "id": Synopsis(
        "-Z --context --real --zero "
        "-agGnruz --user --group --groups --name", "data"),
    "groups": Synopsis("", "data*"),
    "hostname": Synopsis("-sI --short --all-ip-addresses", ""),  # for all else it may ask a name server
    "uptime": Synopsis(
        "-r --raw --container "
        "-ps --pretty --since", ""),
    "free": Synopsis(
        "-v --bytes --kilo --tera --peta --kibi --mebi --gibi --tebi --pebi --si --lohi --committed --wide -s= -c= "
        "--seconds= --count= -L --line "
        "-bkmghtlw --human --mega --giga --total", ""),
    "tty": Synopsis(
        "--silent --quiet "
        "-s", ""),
    "ps": Synopsis(
        "-acdNTjy --pid= --format= --ppid= --no-heading --headers --user= --User= -u= -U= -C= --deselect --cumulative "
        "-AedfFlwHL -p= -o= --no-headers --forest --sort=", "data*", check=ps),
    **dict.fromkeys(("whatis", "apropos"), Synopsis(
        "-vrwela -s= -L= --verbose --exact --regex --wildcard --and --long --sections= --section= --locale=", "data*")),
    "zdump": Synopsis("-vVi -c= -t=", "read*"),
    "stty": Synopsis("-ag --all --save", "data", check=terminal_queries),
    "shasum": Synopsis("-abctUpsw0 -a= --algorithm= --binary --check --text --UNIVERSAL --01 --quiet --status --strict --tag --warn"),
    "man": Synopsis(
        "-aiIK -s= -S= -e= --all --whatis --apropos --global-apropos --where --path --location --ignore-case "
        "--match-case --regex --wildcard --names-only --sections= --extension= --no-subpages --ascii -7 "
        "-fkw", "data*", check=man),
    "locale": Synopsis(
        "-ckv --all-locales --charmaps --category-name --keyword-name --verbose "
        "-am", "data*"),
    "date": Synopsis(
        "--debug --resolution -f=< --file=< "
        "-uR -d= -I? --date= --utc --universal --rfc-email --rfc-3339= --iso-8601? -r=< --reference=<",
                 "data", check=date),
    # contents
    "cat": Synopsis("-AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs"
                " --show-nonprinting"),
    "tac": Synopsis("-br -s= --before --regex --separator="),
    "rev": Synopsis("-0"),
    "nl": Synopsis(
        "--section-delimiter= --footer-numbering= --header-numbering= --join-blank-lines= --no-renumber "
        "-p -b= -d= -f= -h= -i= -l= -n= -s= -v= -w= --body-numbering= --number-format= --number-width="
               " --number-separator= --starting-line-number= --line-increment="),
    "head": Synopsis("-qvz -n= -c= -# --lines= --bytes= --quiet --silent --verbose --zero-terminated"),
    "tail": Synopsis(
        "-fF -s= --follow? --retry --sleep-interval= --pid= --max-unchanged-stats= "
        "-qvz -n= -c= -# --lines= --bytes= --quiet --silent --verbose --zero-terminated"),
    "wc": Synopsis("-clmwL --bytes --chars --lines --words --max-line-length --total="),
    "od": Synopsis(
        "-S= --strings? --endian= --output-duplicates --traditional "
        "-abcdfhiloxsv -A= -j= -N= -t= -w? --address-radix= --skip-bytes= --read-bytes= --format= --width?"),
    **dict.fromkeys(("hexdump", "hd"), Synopsis(
        "-L? -e= -f=< --color? --one-byte-octal --one-byte-char --two-bytes-decimal --two-bytes-octal --two-bytes-hex "
        "--format= --format-file=< "
        "-bcCdovx -n= -s= --canonical --length= --skip= --no-squeezing")),
    "xxd": Synopsis(
        "-Cdv -n= -cols= -len= -seek= -autoskip! -bits! -plain! -include! -uppercase! -postscript! -ps! -name= "
        "-groupsize= -R= "
        "-abeEipu -c= -g= -l= -s= -o= --bits --plain --cols= --len= --seek=", "read", clusters="first"),
    "strings": Synopsis(
        "-do -s= -U= --data --print-file-name --include-all-whitespace --target= --unicode= --output-separator= "
        "-afw -n= -t= -e= -T= --all --bytes= --radix= --encoding=", check=no_argument_file),
    "base64": Synopsis("-diD -w= --decode --ignore-garbage --wrap=", "read"),
    "base32": Synopsis("-di -w= --decode --ignore-garbage --wrap=", "read"),
    "basenc": Synopsis(
        "--base32hex --base2lsbf --z85 "
        "-di -w= --decode --ignore-garbage --wrap= --base64 --base64url --base32 --base16 --base2msbf",
                   "read"),
    "cksum": Synopsis(
        "-cwz -l= --check --length= --zero --ignore-missing --quiet --status --strict --warn --debug --raw --base64 "
        "-a= --algorithm= --untagged --tag"),
    **dict.fromkeys(
        ("md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum"),
        Synopsis("-btzcw -l= --binary --text --tag --zero --check --length= --ignore-missing --quiet --status --strict --warn"),
    ),
    "sum": Synopsis(
        "--sysv "
        "-rs"),
    # made of contents
    "echo": Synopsis("", "data*", inert=True),
    "printf": Synopsis("", "data*", inert=True, check=printf),
    "true": Synopsis("", "data*"),
    "false": Synopsis("", "data*"),
    ":": Synopsis("", "data*", inert=True),
    "exit": Synopsis("", "data*", inert=True, check=exit_status),
    "seq": Synopsis("-w -s= -f= -# --equal-width --separator= --format=", "data*"),
    "yes": Synopsis("", "data*"),
    "sleep": Synopsis("", "data*"),
    "expr": Synopsis("", "data*"),
    "test": Synopsis("", "data*", inert=True, contents=False, check=test, opens=False),
    "factor": Synopsis("", "data*"),
    "sort": Synopsis(
        "--ignore-nonprinting --random-source=< --batch-size= --debug "
        "-bdfgiMhnRrVcCmsuz -k= -t= --ignore-leading-blanks --dictionary-order --ignore-case --numeric-sort"
        " --general-numeric-sort --human-numeric-sort --month-sort --random-sort --reverse --version-sort"
        " --check? --merge --stable --unique --zero-terminated --key= --field-separator= --sort= --parallel="
        " -S= --buffer-size="
    ),
    "uniq": Synopsis(
        "--zero-terminated "
        "-cdDiuz -f= -s= -w= --count --repeated --all-repeated? --skip-fields= --ignore-case"
                 " --skip-chars= --unique --check-chars= --group?", "read"),
    "cut": Synopsis(
        "--zero-terminated "
        "-nsz -b= -c= -d= -f= --bytes= --characters= --delimiter= --fields= --complement"
                " --only-delimited --output-delimiter="),
    "paste": Synopsis(
        "--zero-terminated "
        "-sz -d= --delimiters= --serial"),
    "tr": Synopsis("-cCdst --complement --delete --squeeze-repeats --truncate-set1", "data data"),
    "fold": Synopsis(
        "-c --characters "
        "-bs -w= --bytes --spaces --width="),
    "fmt": Synopsis(
        "-g= --goal= --prefix= --crown-margin --tagged-paragraph "
        "-cstu -w= -p= -# --width= --split-only --uniform-spacing"),
    "column": Synopsis(
        "-dL -l= -n= -O= -E= -H= -R= -T= -W= -r= -i= -p= -S= --table-name= --table-order= --table-columns= "
        "--table-columns-limit= --table-noextreme= --table-noheadings --table-header-repeat --table-hide= "
        "--table-right= --table-truncate= --table-wrap= --table-column= --table-maxout --keep-empty-lines --tree= "
        "--tree-id= --tree-parent= --output-width= --fillrows --columns= "
        "-txeJ -s= -o= -c= -N= --table --separator= --output-separator= --json"),
    "expand": Synopsis("-i -t= --initial --tabs="),
    "unexpand": Synopsis(
        "--first-only "
        "-a -t= --all --tabs="),
    "comm": Synopsis(
        "--zero-terminated "
        "-123z --check-order --nocheck-order --output-delimiter= --total", "read read"),
    "join": Synopsis(
        "-z --ignore-case --zero-terminated "
        "-i -a= -e= -o= -t= -v= -1= -2= -j= --header --check-order --nocheck-order", "read read"),
    "cmp": Synopsis("-bls -i= -n= --print-bytes --verbose --silent --quiet --bytes= --ignore-initial=", "read read"),
    "diff": Synopsis(
        "--normal --ed --rcs --left-column --show-function-line= --expand-tabs --initial-tab --tabsize= "
        "--suppress-blank-empty --unidirectional-new-file --ignore-file-name-case --no-ignore-file-name-case -X=< "
        "--exclude-from=< -S= --starting-file= -D= --ifdef= --ignore-tab-expansion --ignore-trailing-space "
        "--ignore-matching-lines= --horizon-lines= --speed-large-files --palette= "
        "-abBcdeEiNnprqstTuwyZ -C= -U= -I= -x= -W= -F= -L= --brief --report-identical-files --context? --unified?"
        " --side-by-side --width= --recursive --new-file --ignore-case --ignore-all-space --ignore-space-change"
        " --ignore-blank-lines --text --color? --exclude= --label= --strip-trailing-cr --suppress-common-lines"
        " --no-dereference --minimal --show-c-function",
        "read read",
        below="always", here=True, follows="-r --recursive",
    ),
    "diffstat": Synopsis("-bCklmqruv -p= -w= -n="),
    "tsort": Synopsis(""),
    "iconv": Synopsis(
        "--verbose "
        "-c -l -s -f= -t= --from-code= --to-code= --list --silent", check=character_sets),
    "shuf": Synopsis(
        "-z --zero-terminated --random-source=< "
        "-eirz -i= -n= --echo --input-range= --head-count= --repeat"),
    "split": Synopsis("-d -a= -b= -l= -n=", "read write", effect="write"),
    # small languages
    "sed": Synopsis(
        "-l= --debug --sandbox --line-length= --follow-symlinks "
        "-nErsuz --quiet --silent --regexp-extended --separate --unbuffered -e= --expression= --posix"
                " --null-data", "data read*", instead="-e --expression", check=sed),
    "awk": Synopsis(
        "-bcMNnOPrSst --field-separator= --assign= --characters-as-bytes --traditional --bignum "
        "--use-lc-numeric --non-decimal-data --optimize --posix --re-interval --sandbox --no-optimize --lint-old --csv "
        "-L? --lint? "
        "-F= -v=", "data awk*", check=any_awk, clusters="first"),
    "gawk": Synopsis(
        "-bcMNnOPrSst --field-separator= --assign= --characters-as-bytes --traditional --bignum "
        "--use-lc-numeric --non-decimal-data --optimize --posix --re-interval --sandbox --no-optimize --lint-old --csv "
        "-L? --lint? "
        "-F= -v=", "data awk*", check=awk),
    **dict.fromkeys(("mawk", "nawk", "original-awk"), Synopsis("-F= -v=", "data awk*", check=awk)),
    "jq": Synopsis(
        "--args --jsonargs --stream --stream-errors --seq --unbuffered --raw-output0 "
        "-rcnsejSMCaR --raw-output --compact-output --null-input --slurp --exit-status --join-output --sort-keys"
        " --monochrome-output --color-output --ascii-output --raw-input --tab --indent= --arg== --argjson==",
        "data read*",
        check=jq,
    ),
}  # fmt: skip

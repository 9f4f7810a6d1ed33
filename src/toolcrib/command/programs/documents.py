"""Programs that look into tables, documents, source files and binaries, and print what they find."""

from __future__ import annotations

from toolcrib.command.programs.checks import (
    bat,
    checked_style,
    cloc,
    dc,
    no_argument_file,
    no_commands,
    no_schemes,
    option_first,
    plain_names,
    replaced_variables,
)
from toolcrib.command.programs.options import Synopsis

_YAMLLINT = "-s --list-files --strict --no-warnings -f= --format= -c=< --config-file=< -d= --config-data="

SYNOPSES: dict[str, Synopsis] = {
    # binaries
    "readelf": Synopsis(
        "-ahlSgtesnrudAcDLzIWTH -C? -U= -x= -p= -R= --all --file-header --program-headers --segments"
        " --section-headers --sections --section-groups --section-details --headers --syms --symbols --dyn-syms"
        " --lto-syms --sym-base= --demangle? --no-demangle --recurse-limit --no-recurse-limit --unicode= --notes"
        " --relocs --unwind --dynamic --version-info --arch-specific --archive-index --use-dynamic --lint"
        " --enable-checks --hex-dump= --string-dump= --relocated-dump= --decompress --dwarf-depth="
        " --dwarf-start= --ctf= --ctf-parent= --ctf-symbols= --ctf-strings= --sframe? --histogram --wide"
        " --silent-truncation", check=no_argument_file),
    "gprof": Synopsis("-abcDilpPqQTvz -e= -E= -f= -F= -k= -C? -J? --brief --static-call-graph --no-static --ignore-non-functions --traditional"
                  " --flat-profile? --no-flat-profile? --graph? --no-graph? --width= --demangle? --no-demangle --print-path", "read*",
                  check=no_argument_file),
    "objdump": Synopsis(
        "-afphxdDsLtTrRviHlFwUz -P= -b= -m= -j= -M= -E= -C? --archive-headers --file-headers --private-headers"
        " --private= --all-headers --disassemble --disassemble-all --full-contents --ctf? --sframe? --syms"
        " --dynamic-syms --reloc --dynamic-reloc --info --target= --architecture= --section="
        " --disassembler-options= --endian= --line-numbers --file-offsets --demangle? --recurse-limit"
        " --no-recurse-limit --wide --unicode= --disassemble-zeroes --start-address= --stop-address="
        " --no-addresses --prefix-addresses --insn-width= --adjust-vma= --show-all-symbols --special-syms"
        " --inlines --prefix= --prefix-strip= --dwarf-depth= --dwarf-start= --dwarf-check --ctf-parent="
        " --visualize-jumps --disassembler-color= --visualize-jumps?", check=no_argument_file),
    "nm": Synopsis(
        "-aABDegjnopPrSsuWh -C? -f= -t= --debug-syms --print-file-name --demangle? --no-demangle"
        " --recurse-limit --no-recurse-limit --dynamic --format= --extern-only --ifunc-chars= --just-symbols"
        " --numeric-sort --no-sort --portability --reverse-sort --print-size --print-armap --quiet --size-sort"
        " --special-syms --synthetic --radix= --target= --undefined-only --defined-only --unicode= --no-weak"
        " --with-symbol-versions", check=no_argument_file),
    "size": Synopsis("-ABGodxtf --common --target= --radix= --format= --totals", "read*", check=no_argument_file),
    "addr2line": Synopsis("-aipsfRr -b= -e=< -j= -C? --addresses --target= --exe=< --inlines --section= --pretty-print --basenames"
                      " --functions --demangle? --recurse-limit --no-recurse-limit", "data*", needs="-e --exe",
                      check=no_argument_file),
    "c++filt": Synopsis("-_nprti -s= --strip-underscore --no-strip-underscore --no-params --no-verbose --types --format=", "data*",
                    check=no_argument_file),
    # source files
    "hexyl": Synopsis(
        "-v -n= -c= -s= -o= --length= --bytes= --skip= --block-size= --no-squeezing --color= --border="
        " --display-offset=", "read"),
    "shellcheck": Synopsis(
        "-i= -e= -f= -o= -s= -S= -W= -V --color? -C? --include= --exclude= --format= --list-optional --norc"
        " --enable= --shell= --severity= --wiki-link-count="),
    # Without settings in an argument it obeys those of the folder, which may name any file.
    "yamllint": Synopsis(_YAMLLINT, "read*", "exec", plain=True, below="always", check=checked_style, reading=Synopsis(
        _YAMLLINT, below="always", check=checked_style, needs="-d --config-data")),
    "cloc": Synopsis("-v? --by-file --by-file-by-lang --csv --json --md --xml --yaml --quiet --hide-rate --include-lang= --exclude-lang="
                 " --exclude-dir= --include-ext= --exclude-ext= --progress-rate= --progress= --sum-one --by-percent= --show-lang? --show-ext? --3"
                 " --skip-uniqueness --max-file-size= --unix --windows --fullpath --timeout= --docstring-as-code --csv-delimiter=",
                 check=cloc, below="always"),
    "gofmt": Synopsis("-s -e -d -l", below="always"),
    **dict.fromkeys(("bat", "batcat"), Synopsis(
        "-ApnfuPd --diff --diff-context= -l= -H= -m= -r= --show-all --plain --paging= --no-paging --language= --highlight-line= --file-name= --tabs= --wrap="
        " --terminal-width= --number --color= --italic-text= --decorations= --force-colorization --map-syntax= --theme= --theme-dark="
        " --theme-light= --list-themes --style= --line-range= --list-languages --unbuffered --squeeze-blank --squeeze-limit="
        " --strip-ansi= --nonprintable-notation= --ignored-suffix= --chop-long-lines", check=bat)),
    **dict.fromkeys(("exa", "eza"), Synopsis(
        "-1laARdTGxFhbgHimSuUBrsDfXMOZno -I= -t= -L= -w= -s= --oneline --long --grid --across --recurse --tree --dereference --classify? --color?"
        " --colour? --color-scale? --colour-scale? --icons? --no-quotes --hyperlink --width= --all"
        " --almost-all --list-dirs --level= --reverse --sort= --group-directories-first --only-dirs --only-files"
        " --ignore-glob= --git-ignore --binary --bytes --group --smart-group --header --links --inode --mounts --numeric --flags"
        " --blocksize --blocks --time= --modified --accessed --created --changed --time-style= --total-size --octal-permissions"
        " --no-permissions --no-filesize --no-user --no-time --no-icons --no-git --git --git-repos --extended --context",
        contents=False, below="always", here=True)),
    # tables and trees of data
    "csvcut": Synopsis(
        "-tbSHvlnx -d= -q= -p= -z= -e= -K= -c= -C= --delimiter= --tabs --quotechar= --quoting= -u= --no-doublequote"
        " --escapechar= --maxfieldsize= --encoding= --skipinitialspace --no-header-row --skip-lines= --verbose"
        " --linenumbers --zero --names --columns= --not-columns= --delete-empty-rows", "read"),
    "csvformat": Synopsis(
        "-tbSHvlTB -d= -q= -p= -z= -e= -K= -D= -Q= -P= -M= --delimiter= --tabs --quotechar= --quoting= -u="
        " --no-doublequote --escapechar= --maxfieldsize= --encoding= --skipinitialspace --no-header-row"
        " --skip-lines= --verbose --linenumbers --zero --out-delimiter= --out-tabs --out-quotechar="
        " --out-quoting= -U= --out-no-doublequote --out-escapechar= --out-lineterminator=", "read"),
    "csvgrep": Synopsis(
        "-tbSHvlnia -d= -q= -p= -z= -e= -K= -c= -m= -r= --delimiter= --tabs --quotechar= --quoting= -u="
        " --no-doublequote --escapechar= --maxfieldsize= --encoding= --skipinitialspace --no-header-row"
        " --skip-lines= --verbose --linenumbers --zero --names --columns= --match= --regex= --invert-match"
        " --any-match -f=< --file=<", "read"),
    "csvstat": Synopsis(
        "-tbSHvln -d= -q= -p= -z= -e= -K= -c= -y= --delimiter= --tabs --quotechar= --quoting= -u= --no-doublequote"
        " --escapechar= --maxfieldsize= --encoding= --skipinitialspace --no-header-row --skip-lines= --verbose"
        " --linenumbers --zero --csv --names --columns= --type --nulls --unique --min --max --sum --mean"
        " --median --stdev --len --freq --freq-count= --count --snifflimit=", "read"),
    "csvlook": Synopsis(
        "-tbSHvlI -d= -q= -p= -z= -e= -L= -K= -y= --delimiter= --tabs --quotechar= --quoting= -u= --no-doublequote"
        " --escapechar= --maxfieldsize= --encoding= --locale= --skipinitialspace --blanks --date-format="
        " --datetime-format= --no-header-row --skip-lines= --verbose --linenumbers --zero --max-rows="
        " --max-columns= --max-column-width= --snifflimit= --no-inference", "read"),
    "csvsort": Synopsis(
        "-tbSHvlnrI -d= -q= -p= -z= -e= -L= -K= -c= -y= --delimiter= --tabs --quotechar= --quoting= -u="
        " --no-doublequote --escapechar= --maxfieldsize= --encoding= --locale= --skipinitialspace --blanks"
        " --date-format= --datetime-format= --no-header-row --skip-lines= --verbose --linenumbers --zero --names"
        " --columns= --reverse --snifflimit= --no-inference", "read"),
    "csvjoin": Synopsis(
        "-tbSHvlI -d= -q= -p= -z= -e= -L= -K= -c= -y= --delimiter= --tabs --quotechar= --quoting= -u="
        " --no-doublequote --escapechar= --maxfieldsize= --encoding= --locale= --skipinitialspace --blanks"
        " --date-format= --datetime-format= --no-header-row --skip-lines= --verbose --linenumbers --zero"
        " --columns= --outer --left --right --snifflimit= --no-inference"),
    "csvjson": Synopsis(
        "-tbSHvlI -d= -q= -p= -z= -e= -L= -K= -i= -k= -y= --delimiter= --tabs --quotechar= --quoting= -u="
        " --no-doublequote --escapechar= --maxfieldsize= --encoding= --locale= --skipinitialspace --blanks"
        " --date-format= --datetime-format= --no-header-row --skip-lines= --verbose --linenumbers --zero"
        " --indent= --key= --lat= --lon= --type= --geometry= --crs= --no-bbox --stream --snifflimit="
        " --no-inference", "read"),
    "csvstack": Synopsis(
        "-tbSHvl -d= -q= -p= -z= -e= -K= -g= -n= --delimiter= --tabs --quotechar= --quoting= -u= --no-doublequote"
        " --escapechar= --maxfieldsize= --encoding= --skipinitialspace --no-header-row --skip-lines= --verbose"
        " --linenumbers --zero --groups= --group-name= --filenames"),
    "in2csv": Synopsis(
        "-tbSHvlnI -d= -q= -p= -z= -e= -L= -K= -k= -y= --delimiter= --tabs --quotechar= --quoting= -u="
        " --no-doublequote --escapechar= --maxfieldsize= --encoding= --locale= --skipinitialspace --blanks"
        " --date-format= --datetime-format= --no-header-row --skip-lines= --verbose --linenumbers --zero --key="
        " --names --sheet= --encoding-xls= --snifflimit= --no-inference -f= --format= -s=< --schema=<", "read"),
    "datamash": Synopsis(
        "-CfHisWz -g= -t= -R= --skip-comments --full --group= --header-in --header-out --headers --ignore-case"
        " --sort --no-strict --filler= --field-separator= --format= --output-delimiter= --narm --round="
        " --whitespace --zero-terminated", "data*"),
    "numfmt": Synopsis(
        "-zM -d= --debug --delimiter= --field= --format= --from= --from-unit= --grouping --header? --invalid="
        " --padding= --round= --suffix= --to= --to-unit= --zero-terminated", "data*"),
    "gron": Synopsis("-uvcmsj --ungron --values --colorize --monochrome --stream --json --no-sort", "read"),
    "csvsql": Synopsis("-tSHl -d= -q= -e= -i= -y= --delimiter= --tabs --encoding= --no-header-row --dialect= --tables= --no-constraints"
                   " --no-inference --snifflimit="),
    "csvclean": Synopsis("-tnSHl -d= -q= -e= --delimiter= --tabs --encoding= --no-header-row --linenumbers --dry-run", "read",
                     needs="-n --dry-run"),
    "xmllint": Synopsis("--noout --nonet --format --recover --huge --html --xmlout --noblanks --nowarning --quiet --timing --nsclean"
                    " --nocdata --nocompact --encode= --pretty= --xpath= --debug --stream --sax --repeat"
                    " --nocatalogs --push --memory --oldxml10 --dropdtd"),
    "bc": Synopsis("-ilqsw --interactive --mathlib --quiet --standard --warn"),
    "dc": Synopsis("-e= --expression=", "", needs="-e --expression", check=dc),
    **dict.fromkeys(("msgcat", "msguniq", "msgcomm"), Synopsis(
        "-udeEPips -n? -t= -w= -F --less-than= --more-than= --unique --repeated --to-code= --use-first --lang= --color? --no-escape"
        " --escape --force-po --indent --no-location --add-location? --strict --width= --no-wrap --sort-output --sort-by-file")),
    "msggrep": Synopsis("-KTCXJEipPsvF -e= -N= -M= -f=< --location= --domain= --msgctxt --msgid --msgstr --comment --extracted-comment"
                    " --basic-regexp --extended-regexp --fixed-strings --regexp= --file=< --ignore-case --invert-match --color?"
                    " --no-escape --escape --force-po --indent --no-location --strict --no-wrap --sort-output --sort-by-file"),
    "msgattrib": Synopsis("-eEips -n? -w= -F --translated --untranslated --no-fuzzy --only-fuzzy --no-obsolete --only-obsolete --color?"
                      " --no-escape --escape --force-po --indent --no-location --add-location? --strict --width= --no-wrap"
                      " --sort-output --sort-by-file --set-fuzzy --clear-fuzzy --set-obsolete --clear-obsolete", "read"),
    "msgunfmt": Synopsis("-eEip -w= --no-escape --escape --force-po --indent --strict --width= --no-wrap --sort-output"),
    # texts
    "pr": Synopsis(
        "-acdFfJmrtTv -C= -D= -e? -h= -i? -l= -n? -N= -o= -s? -S? -w= -W= -# --columns= --across"
        " --show-control-chars --double-space --date-format= --expand-tabs? --form-feed --header= --output-tabs?"
        " --join-lines --length= --merge --number-lines? --first-line-number= --indent= --no-file-warnings"
        " --separator? --sep-string? --omit-header --omit-pagination --show-nonprinting --width= --page-width=", "read*", check=no_commands),
    "wdiff": Synopsis(
        "-C123ilnpsv -w= -x= -y= -z= --copyright --no-deleted --no-inserted --no-common --ignore-case"
        " --less-mode --avoid-wraps --printer --statistics --start-delete= --end-delete= --start-insert="
        " --end-insert=", "read read"),
    "colordiff": Synopsis(
        "-qeptTrNiEZbwBad -C= -U= -W= -F= -x= -I= -D= --normal --brief --report-identical-files --ed --rcs"
        " --side-by-side --width= --left-column --suppress-common-lines --show-c-function --show-function-line="
        " --label= --expand-tabs --initial-tab --tabsize= --suppress-blank-empty --recursive --no-dereference"
        " --new-file --unidirectional-new-file --ignore-file-name-case --no-ignore-file-name-case --exclude="
        " --ignore-case --ignore-tab-expansion --ignore-trailing-space --ignore-space-change --ignore-all-space"
        " --ignore-blank-lines --ignore-matching-lines= --text --strip-trailing-cr --ifdef= --minimal"
        " --horizon-lines= --speed-large-files --color? --palette= -s -n -y -c -u --context? --unified?", "read read", below="always", here=True, follows="-r --recursive"),
    "uchardet": Synopsis("-v"),
    "less": Synopsis(
        "-aABcCdeEfFgGiIJKLmMnNqQrRsSuUwWX~ -# -b= -D= -h= -j= -p= -P= -x= -y= -z= --search-skip-screen --buffers= --auto-buffers"
        " --clear-screen --CLEAR-SCREEN --color= --quit-at-eof --QUIT-AT-EOF --force --quit-if-one-screen --hilite-search --HILITE-SEARCH"
        " --ignore-case --IGNORE-CASE --jump-target= --status-column --quit-on-intr --no-lessopen --long-prompt --LONG-PROMPT --line-numbers"
        " --LINE-NUMBERS --pattern= --prompt= --quiet --silent --QUIET --raw-control-chars --RAW-CONTROL-CHARS --squeeze-blank-lines"
        " --chop-long-lines --tabs= --no-init --window= --follow-name --incsearch --mouse --no-keypad --use-color", check=no_commands),
    "more": Synopsis("-dlfpcsue -n= -# --silent --logical --no-pause --print-over --clean-print --exit-on-eof --squeeze --plain --lines=",
                 check=no_commands),
    "col": Synopsis("-bfphxH -l= --no-backspaces --fine --pass --tabs --spaces --lines=", ""),
    "colrm": Synopsis("", "data data"),
    "colcrt": Synopsis("-2 --no-underlining --half-lines"),
    "ul": Synopsis("-i -t= -T= --terminal= --indicated"),
    "sdiff": Synopsis("-aBbdEHilstWZ -I= -w= --text --ignore-case --ignore-all-space --ignore-space-change --ignore-blank-lines --width="
                  " --left-column --suppress-common-lines --expand-tabs --tabsize= --minimal --strip-trailing-cr --ignore-tab-expansion"
                  " --ignore-trailing-space --ignore-matching-lines=", "read read"),
    "diff3": Synopsis("-AaEeimTXx3 -L= --show-all --text --show-overlap --ed --merge --initial-tab --overlap-only --easy-only --label="
                  " --strip-trailing-cr", "read read read"),
    **dict.fromkeys(("lsdiff", "filterdiff"), Synopsis(
        "-nNEsHvz -p= -F= -x= -i= --line-number --number-files --strip= --exclude= --include= --status --with-filename --no-filename"
        " --empty-files-as-removed --files= --addprefix= --format= --lines= --hunks= --clean --annotate --verbose")),
    "grepdiff": Synopsis("-nEsHv --output-matching= --line-number --extended-regexp --only-match= --verbose", "data read*"),
    **dict.fromkeys(("interdiff", "combinediff"), Synopsis("-q -U= -p= -d= --strip-match= --quiet --ignore-case --ignore-all-space"
                                                       " --ignore-space-change --ignore-blank-lines --no-revert-omitted", "read read")),
    # A name that begins or ends with | is a command to some scripts of perl.
    "recountdiff": Synopsis("-h", check=plain_names),
    "flipdiff": Synopsis("-qiwbBz -U= -p= -d= --unified= --strip-match= --drop-context= --quiet --ignore-case --ignore-all-space"
                     " --ignore-space-change --ignore-blank-lines --decompress", "read read"),
    "json_pp": Synopsis("-v -t= -json_opt=", ""),  # -f eval runs its input
    "zipdetails": Synopsis("--scan --redact --utc", "read"),
    "msgcmp": Synopsis("-mN --multi-domain --no-fuzzy-matching --use-fuzzy --use-untranslated", "read read"),
    **dict.fromkeys(("gettext", "ngettext"), Synopsis("-ens -d= -c= --domain= --context=", "data*")),
    "readtags": Synopsis("-lDneipE -t=< --list --extension-fields --icase-match --line-number --prefix-match --tag-file=<", "data*",
                     needs="-t --tag-file"),
    "podchecker": Synopsis("-warnings! -nowarnings!"),
    "pod2text": Synopsis("-aclostu -i= -m= -q= -w= --alt --code --color --indent= --loose --margin= --nourls --overstrike --quotes="
                     " --sentence --utf8 --width=", "read"),
    "corelist": Synopsis("-adru -v? -f? --utils --upstream --feature? --diff", "data*"),
    "eu-nm": Synopsis("-aDgusABPSCnpr -f= -t= --debug-syms --defined-only --dynamic --extern-only --print-armap --undefined-only"
                  " --print-file-name --format= --mark-special --portability --print-size --radix= --color? --demangle --numeric-sort"
                  " --no-sort --reverse-sort"),
    "eu-size": Synopsis("-ABdfoxFt --format= --radix= --totals"),
    "eu-strings": Synopsis("-afo -e= -n= -t= --all --encoding= --print-file-name --bytes= --radix="),
    "eu-readelf": Synopsis("-aAdeghIlnrsSVcNUWzw -p? -x= --elf-section? --all --arch-specific --dyn-syms --dynamic --exception"
                       " --section-groups --file-header --histogram --program-headers --notes? --relocs --symbols? --section-headers"
                       " --version-info --archive-index --strings? --hex-dump= --numeric-addresses"
                       " --unresolved-address-offsets --wide --decompress"),
    "eu-elfclassify": Synopsis("-fzqv --core --debug-only --elf --elf-archive --elf-file --executable --file --library"
                           " --linux-kernel-module --loadable --program --shared --unstripped --no-stdin --compressed --matching"
                           " --no-print --not-matching --print --print0 --quiet --verbose", contents=False),
    "eu-elfcmp": Synopsis("-lq --gaps= --hash-inexact --ignore-build-id --verbose --quiet", "read read"),
    "eu-elflint": Synopsis("-dq --debuginfo --gnu-ld --quiet --strict"),
    "eu-objdump": Synopsis("-drs -j= --disassemble --reloc --full-contents --section= --color?"),
    # certificates and digests
    "openssl version": Synopsis("-avbofpdre", ""),
    "openssl list": Synopsis("-commands! -digest-commands! -digest-algorithms! -cipher-commands! -cipher-algorithms! -public-key-algorithms!"
                         " -standard-commands! -disabled! -1", ""),
    "openssl ciphers": Synopsis("-vVs -tls1_2! -tls1_3! -stdname!", "data"),
    "openssl rand": Synopsis("-hex! -base64!", "data"),
    "openssl dgst": Synopsis("-list! -sha1! -sha256! -sha384! -sha512! -md5! -sha3-256! -hex! -r -c"),
    **{f"openssl {digest}": Synopsis("-hex! -r -c") for digest in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3-256")},
    **{f"openssl {base64}": Synopsis("-d -e -a -A -base64! -in=<", "", needs=need)
       for base64, need in (("base64", "-in -d -e -A"), ("enc", "-base64"))},
    "openssl help": Synopsis("", "data"),
    "openssl ecparam": Synopsis("-list_curves!", "", needs="-list_curves"),
    "openssl pkcs7": Synopsis("-in=< -inform= -print_certs! -text! -noout!", "", check=no_schemes),
    "openssl prime": Synopsis("-hex! -generate! -safe! -bits= -checks=", "data*"),
    "openssl verify": Synopsis("-CAfile=< -untrusted=< -trusted=< -show_chain! -verbose! -partial_chain! -purpose=", check=no_schemes),
    "openssl asn1parse": Synopsis("-in=< -inform= -i -dump! -noout!", "", check=no_schemes),
    **dict.fromkeys(("openssl x509", "openssl req", "openssl crl"), Synopsis(
        "-in=< -inform= -noout! -text! -subject! -issuer! -dates! -startdate! -enddate! -fingerprint! -serial! -hash! -pubkey! -modulus!"
        " -sha1! -sha256! -checkend= -nameopt= -ext= -purpose! -email! -verify! -crlnumber! -lastupdate! -nextupdate!", "", check=no_schemes)),
    "look": Synopsis("-adf -t= --alternative --alphanum --ignore-case --terminate=", "data read"),
    "ts": Synopsis("-irsm", "data"),
    "isutf8": Synopsis("-qliv --quiet --list --invert --verbose"),
    "combine": Synopsis("", "read data read", check=plain_names),
    **dict.fromkeys(("dos2unix", "unix2dos", "mac2unix", "unix2mac"), Synopsis("-i? --info?", needs="-i --info", check=option_first)),
    "getopt": Synopsis("-aqQTu -l= -n= -o= -s= --alternative --longoptions= --name= --options= --quiet --quiet-output --shell= --test"
                   " --unquoted", "data*"),
    "envsubst": Synopsis("-v --variables", "data", check=replaced_variables),
    "pathchk": Synopsis("-pP --portability", "data*"),
    "figlet": Synopsis("-clrtkoSWnp -w= -m=", "data*", inert=True),
    "ptx": Synopsis("-AfrROTt -b=< -i=< -o=< --break-file=< --ignore-file=< --only-file=< -F= -M= -S= -W= -g= -w= --auto-reference --flag-truncation= --macro-name= --right-side-refs --sentence-regexp="
                " --word-regexp= --ignore-case --gap-size= --references --width= --format="),
}  # fmt: skip

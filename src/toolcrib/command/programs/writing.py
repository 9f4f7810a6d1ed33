"""Programs that change files, and those that reach other machines: they ask, with what they would touch."""

from __future__ import annotations

from toolcrib.command.programs.options import Usage

USAGES: dict[str, Usage] = {
    "touch": Usage("-acm -d= -t= -r=< --no-create --date= --reference=<", "write*", "write"),
    "mkdir": Usage("-pv -m= --parents --verbose --mode=", "write*", "write"),
    "rmdir": Usage("-pv --parents --verbose --ignore-fail-on-non-empty", "delete*", "write"),
    "rm": Usage("-fiIrRdv --force --recursive --dir --verbose --one-file-system --interactive?", "delete*", "write", below="recursive"),
    "unlink": Usage("", "delete", "write"),
    "cp": Usage("-afiLnPpRrTuvxHd --archive --force --no-clobber --recursive --update? --verbose --preserve?"
               " --no-dereference --dereference --parents --interactive --no-target-directory -t=> "
               " --target-directory=>", "read* write", "write", below="recursive"),
    "mv": Usage("-finTuv --force --no-clobber --update? --verbose --interactive --no-target-directory -t=>"
               " --target-directory=>", "delete* write", "write"),
    "ln": Usage("-sfnivrTP --symbolic --force --no-dereference --relative --verbose", "read* write", "write"),
    "install": Usage("-dDvpT -m= -o= -g= -t=> --mode= --directory --verbose --preserve-timestamps", "read* write", "write"),
    "tee": Usage("-ai --append --ignore-interrupts", "write*", "write"),
    "truncate": Usage("-c -s= -r=< --size= --no-create", "write*", "write"),
    "chmod": Usage("-Rvcf --recursive --verbose --changes --quiet --reference=<", "data write*", "write", below="recursive"),
    "chown": Usage("-Rvcfh --recursive --verbose --no-dereference", "data write*", "write", below="recursive"),
    "chgrp": Usage("-Rvcfh --recursive --verbose", "data write*", "write", below="recursive"),
    "dd": Usage("", "data*", "write"),
    "shred": Usage("-uvzf -n= -s= --remove? --iterations= --zero", "delete*", "write"),
    "patch": Usage("-NRtE -p= -i=< -d=> -s --strip= --dry-run --forward --reverse --input=<", "write read", "write"),
    "gzip": Usage("-dfkclqrtv123456789 --decompress --force --keep --stdout --list --test", "write*", "write"),
    "gunzip": Usage("-fkclqrtv --force --keep --stdout --list --test", "write*", "write"),
    "zip": Usage("-rq9j -x=", "write read*", "write", below="recursive"),
    "rsync": Usage("-avzrnPhutplogD --archive --verbose --dry-run --delete --exclude= --include= --progress",
                  "read* write", "network"),
    "curl": Usage("-sSLfkIiv -X= -H= -d= -A= -m= -w= -G --silent --show-error --location --fail --head --include"
                 " --header= --data= --request= --max-time= --compressed --retry= -o=> --output=>", "data*", "network"),
    "wget": Usage("-q -c -S --quiet --spider -T= --timeout= -O=> --output-document=>", "data*", "network"),
    **dict.fromkeys(("ping", "dig", "nslookup", "host", "traceroute"), Usage("-c= -W= -4 -6", "data*", "network")),
    **dict.fromkeys(("ssh", "scp", "sftp", "nc", "ncat", "telnet", "ftp"), Usage("", "data*", "network")),
    "kill": Usage("-# -9 -l -s=", "data*", "exec"),
    **dict.fromkeys(("pkill", "killall"), Usage("-9 -f -u= -x", "data*", "exec")),
}  # fmt: skip

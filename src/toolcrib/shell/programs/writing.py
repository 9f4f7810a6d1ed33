# ruff: noqa: E501 - tables read better in lines
"""Programs that change files, and those that reach other machines: they ask, with what they would touch."""

from __future__ import annotations

from toolcrib.shell.options import Form

FORMS: dict[str, Form] = {
    "touch": Form("-acm -d= -t= -r=< --no-create --date= --reference=<", "write*", "write"),
    "mkdir": Form("-pv -m= --parents --verbose --mode=", "write*", "write"),
    "rmdir": Form("-pv --parents --verbose --ignore-fail-on-non-empty", "delete*", "write"),
    "rm": Form("-fiIrRdv --force --recursive --dir --verbose --one-file-system --interactive?", "delete*", "write"),
    "unlink": Form("", "delete", "write"),
    "cp": Form("-afiLnPpRrTuvxHd --archive --force --no-clobber --recursive --update? --verbose --preserve?"
               " --no-dereference --dereference --parents --interactive --no-target-directory -t=> "
               " --target-directory=>", "read* write", "write"),
    "mv": Form("-finTuv --force --no-clobber --update? --verbose --interactive --no-target-directory -t=>"
               " --target-directory=>", "delete* write", "write"),
    "ln": Form("-sfnivrTP --symbolic --force --no-dereference --relative --verbose", "read* write", "write"),
    "install": Form("-dDvpT -m= -o= -g= -t=> --mode= --directory --verbose --preserve-timestamps", "read* write", "write"),
    "tee": Form("-ai --append --ignore-interrupts", "write*", "write"),
    "truncate": Form("-c -s= -r=< --size= --no-create", "write*", "write"),
    "chmod": Form("-Rvcf --recursive --verbose --changes --quiet --reference=<", "data write*", "write"),
    "chown": Form("-Rvcfh --recursive --verbose --no-dereference", "data write*", "write"),
    "chgrp": Form("-Rvcfh --recursive --verbose", "data write*", "write"),
    "dd": Form("", "data*", "write"),
    "shred": Form("-uvzf -n= -s= --remove? --iterations= --zero", "delete*", "write"),
    "patch": Form("-NRtE -p= -i=< -d=> -s --strip= --dry-run --forward --reverse --input=<", "write read", "write"),
    "gzip": Form("-dfkclqrtv123456789 --decompress --force --keep --stdout --list --test", "write*", "write"),
    "gunzip": Form("-fkclqrtv --force --keep --stdout --list --test", "write*", "write"),
    "zip": Form("-rq9j -x=", "write read*", "write"),
    "rsync": Form("-avzrnPhutplogD --archive --verbose --dry-run --delete --exclude= --include= --progress",
                  "read* write", "network"),
    "curl": Form("-sSLfkIiv -X= -H= -d= -A= -m= -w= -G --silent --show-error --location --fail --head --include"
                 " --header= --data= --request= --max-time= --compressed --retry= -o=> --output=>", "data*", "network"),
    "wget": Form("-q -c -S --quiet --spider -T= --timeout= -O=> --output-document=>", "data*", "network"),
    **dict.fromkeys(("ping", "dig", "nslookup", "host", "traceroute"), Form("-c= -W= -4 -6", "data*", "network")),
    **dict.fromkeys(("ssh", "scp", "sftp", "nc", "ncat", "telnet", "ftp"), Form("", "data*", "network")),
    "kill": Form("-# -9 -l -s=", "data*", "exec"),
    **dict.fromkeys(("pkill", "killall"), Form("-9 -f -u= -x", "data*", "exec")),
}  # fmt: skip

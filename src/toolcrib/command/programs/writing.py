"""Programs that change files, and those that reach other machines: they ask, with what they would touch."""

from __future__ import annotations

from toolcrib.command.programs.languages import data_files, dd
from toolcrib.command.programs.options import Synopsis

SYNOPSES: dict[str, Synopsis] = {
    "touch": Synopsis("-acm -d= -t= -r=< --no-create --date= --reference=<", "write*", "write"),
    "mkdir": Synopsis("-pv -m= --parents --verbose --mode=", "write*", "write"),
    "rmdir": Synopsis("-pv --parents --verbose --ignore-fail-on-non-empty", "delete*", "write"),
    "rm": Synopsis("-fiIrRdv --force --recursive --dir --verbose --one-file-system --interactive?", "delete*", "write", below="recursive"),
    "unlink": Synopsis("", "delete", "write"),
    "cp": Synopsis("-afiLnPpRrTuvxHd --archive --force --no-clobber --recursive --update? --verbose --preserve?"
               " --no-dereference --dereference --parents --interactive --no-target-directory -t=> "
               " --target-directory=>", "read* write", "write", below="recursive"),
    "mv": Synopsis("-finTuv --force --no-clobber --update? --verbose --interactive --no-target-directory -t=>"
               " --target-directory=>", "delete* write", "write"),
    "ln": Synopsis("-sfnivrTP --symbolic --force --no-dereference --relative --verbose", "read* write", "write"),
    "install": Synopsis("-dDvpT -m= -o= -g= -t=> --mode= --directory --verbose --preserve-timestamps", "read* write", "write"),
    "tee": Synopsis("-ai --append --ignore-interrupts", "write*", "write"),
    "truncate": Synopsis("-c -s= -r=< --size= --no-create", "write*", "write"),
    "chmod": Synopsis("-Rvcf --recursive --verbose --changes --quiet --reference=<", "data write*", "write", below="recursive"),
    "chown": Synopsis("-Rvcfh --recursive --verbose --no-dereference", "data write*", "write", below="recursive"),
    "chgrp": Synopsis("-Rvcfh --recursive --verbose", "data write*", "write", below="recursive"),
    "dd": Synopsis("", "data*", "write", check=dd),
    "shred": Synopsis("-uvzf -n= -s= --remove? --iterations= --zero", "delete*", "write"),
    "patch": Synopsis("-NRtE -p= -i=< -d=> -s --strip= --dry-run --forward --reverse --input=<", "write read", "write"),
    "zip": Synopsis("-rq9j -x=", "write read*", "write", below="recursive"),
    "rsync": Synopsis("-avzrnPhutplogD --archive --verbose --dry-run --delete --exclude= --include= --progress",
                  "read* write", "network"),
    "curl": Synopsis("-sSLfkIiv -X= -H= -d= -A= -m= -w= -G --silent --show-error --location --fail --head --include"
                 " --header= --data= --request= --max-time= --compressed --retry= -o=> --output=>", "data*", "network", check=data_files),
    "wget": Synopsis("-q -c -S --quiet --spider -T= --timeout= -O=> --output-document=>", "data*", "network"),
    **dict.fromkeys(("ping", "dig", "nslookup", "host", "traceroute"), Synopsis("-c= -W= -4 -6", "data*", "network")),
    **dict.fromkeys(("ssh", "scp", "sftp", "nc", "ncat", "telnet", "ftp"), Synopsis("", "data*", "network")),
    # To the kill of BSD every long option ends the options, so that a process would follow.
    "kill": Synopsis("-# -9 -s=", "data*", "exec", reading=Synopsis("-lL", "data", needs="-l -L", reading=Synopsis(
        "-lL --list? --table", "", needs="--list --table"))),
    **dict.fromkeys(("pkill", "killall"), Synopsis("-9 -f -u= -x", "data*", "exec")),
}  # fmt: skip

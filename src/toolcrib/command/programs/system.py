"""Programs that tell of the machine: its processes, devices, users, packages, network interfaces."""

from __future__ import annotations

from toolcrib.command.programs.checks import (
    capabilities,
    connections,
    databases,
    ip,
    marks,
    no_ports,
    omitted_processes,
    printed_variables,
    settings,
    sockets,
)
from toolcrib.command.programs.options import Synopsis

SYNOPSES: dict[str, Synopsis] = {
    "lscpu": Synopsis(
        "-abBcJxy -C? -e? -p? --all --online --bytes --caches? --offline --json --extended? --parse? --hex"
        " --physical --output-all", ""),
    "lsmem": Synopsis(
        "-JPabnr -o= -S= --json --pairs --all --bytes --noheadings --output= --output-all --raw --split="
        " --summary?", ""),
    "lsirq": Synopsis("-JPnS -o= -s= --json --pairs --noheadings --output= --sort= --softirq", ""),
    "lsns": Synopsis(
        "-JlnruW -o= -p= -t= -T= --json --list --noheadings --output= --output-all --task= --raw --notruncate"
        " --nowrap --type= --tree=", "data*"),
    "lsipc": Synopsis(
        "-mqsgbceJnlPrty -i= -o? --shmems --queues --semaphores --global --id= --noheadings --notruncate"
        " --time-format= --bytes --creator --export --json --newline --list --output? --numeric-perms --raw"
        " --time --shell", ""),
    "lslocks": Synopsis(
        "-bJinru -o= -p= --bytes --json --noinaccessible --noheadings --output= --output-all --pid= --raw"
        " --notruncate", ""),
    "lsfd": Synopsis(
        "-lJnru -o= -p= -Q= -C= -i? --threads --json --noheadings --output= --raw --notruncate --pid= --filter="
        " --debug-filter --counter= --dump-counters --summary? --inet?", ""),
    "findmnt": Synopsis(
        "-smkAabCcDefiJlnPRrUuvyx -w= -d= -F=< -N= -O= -o= -S= -T= -M= -t= --fstab --mtab --kernel --timeout="
        " --all --ascii --bytes --nocanonicalize --canonicalize --df --direction= --evaluate --tab-file=<"
        " --first-only --invert --json --list --task= --noheadings --options= --output= --output-all --pairs"
        " --pseudo --shadowed --submounts --raw --real --source= --target= --tree --mountpoint= --types= --uniq"
        " --notruncate --nofsroot --shell --verify --verbose --vfs-all", "data*"),
    "lsblk": Synopsis(
        "-ADJMOPSabdfilmnprstyz -E= -I= -T? -e= -o= -w= -x= --noempty --discard --dedup= --include= --json"
        " --merge --output-all --pairs --scsi --tree? --all --bytes --nodeps --exclude= --fs --ascii --list"
        " --perms --noheadings --output= --paths --raw --inverse --topology --width= --sort= --shell --zoned", "data*"),
    "ipcs": Synopsis(
        "-mqsatpclub -i= --id= --shmems --queues --semaphores --all --time --pid --creator --limits --summary"
        " --human --bytes", ""),
    **dict.fromkeys(("last", "lastb"), Synopsis(
        "-aFiRwx -f=< -n= -s= -t= -p= -# --hostlast --file=< --fulltimes --ip --limit= --nohostname --since="
        " --until= --present= --fullnames --system --time-format=", "data*")),
    "lastlog": Synopsis("-b= -t= -u= --before= --time= --user=", ""),
    "namei": Synopsis("-xmolnv --mountpoints --modes --owners --long --nosymlinks --vertical", contents=False, opens=False),
    "pstree": Synopsis(
        "-aAcgGhlnpsStTuUZ -C= -H= -N= --arguments --ascii --compact-not --color= --show-pgids --vt100"
        " --highlight-all --highlight-pid= --long --numeric-sort --ns-sort= --show-pids --show-parents"
        " --ns-changes --thread-names --hide-threads --uid-changes --unicode --security-context", "data*"),
    "pgrep": Synopsis(
        "-lavwcfinoxLA -d= -g= -G= -O= -P= -s= -t= -u= -U= -F=< -r= --delimiter= --list-name --list-full"
        " --inverse --lightweight --count --full --pgroup= --group= --ignore-case --newest --oldest --older="
        " --parent= --session= --terminal= --euid= --uid= --exact --pidfile=< --logpidfile --runstates="
        " --ignore-ancestors --cgroup= --ns= --nslist=", "data*"),
    "getfacl": Synopsis(
        "-adceEsRLPtnpv --access --default --omit-header --all-effective --no-effective --skip-base --recursive"
        " --logical --physical --tabular --numeric --one-file-system --absolute-names", contents=False, below="recursive", follows="-L --logical"),
    "w": Synopsis("-husfoi --no-header --no-current --short --from --old-style --ip-addr", "data*"),
    "who": Synopsis(
        "-abdHlmpqrstTwu --all --boot --dead --heading --ips --login --process --count --runlevel --short"
        " --time --mesg --users --message --writable", "read*"),
    "vmstat": Synopsis(
        "-afmnsdDwty -p= -S= --active --forks --slabs --one-header --stats --disk --disk-sum --partition="
        " --unit= --wide --timestamp --no-first", "data*"),
    "pmap": Synopsis("-xXqp --extended --quiet --show-path", "data*"),
    "ss": Synopsis(
        "-hnaloempTisZz460tMSudwxHO -f= -A= --numeric --all --listening --options --extended --memory"
        " --processes --threads --info --tipcinfo --summary --tos --cgroup --context --contexts --ipv4 --ipv6"
        " --packet --tcp --mptcp --sctp --udp --dccp --raw --unix --tipc --vsock --xdp --family= --no-header"
        " --oneline --inet-sockopt --query= --socket=", "data*", check=sockets),
    "lsb_release": Synopsis("-vidrcas --id --description --release --codename --all --short", ""),
    "fincore": Synopsis("-Jbnr -o= --json --bytes --noheadings --output= --raw", contents=False),
    "isosize": Synopsis("-x -d= --divisor= --sectors", contents=False),
    "mountpoint": Synopsis("-qdx --quiet --nofollow --fs-devno --devno", "read", contents=False),
    "iostat": Synopsis("-cdHhkmNpstxyz -o= --compact --dec= --human --pretty -f -j= -g=", "data*"),
    "infocmp": Synopsis("-dcn01aDfGgilpQqTtUWxCLrIuKEe -v= -w= -R= -s=", "data*"),
    "update-alternatives": Synopsis("--list= --display= --query= --get-selections", "",
                                needs="--list --display --query --get-selections"),
    "systemd-escape": Synopsis("-ump --suffix= --template= --instance --unescape --mangle --path", "data*"),
    "systemd-path": Synopsis("--suffix=", "data*"),
    **{f"systemd-id128 {verb}": Synopsis("-pu --pretty --uuid", "data") for verb in ("new", "boot-id", "invocation-id", "show")},
    **{f"systemd-analyze {verb}": Synopsis("--iterations= --base-time= --no-pager", "data*")
       for verb in ("calendar", "timespan", "timestamp", "exit-status", "capability", "syscall-filter", "filesystems",
                    "compare-versions", "unit-paths")},
    "pidof": Synopsis("-scnqxz -o=", "data*", check=omitted_processes),
    "users": Synopsis("", "read*"),
    "uuidgen": Synopsis("-rmsx -n= -N= --random --md5 --sha1 --name= --namespace= --hex", ""),
    "mcookie": Synopsis("-v --verbose", ""),
    "pwdx": Synopsis("", "data*"),
    "lsattr": Synopsis("-Radlpv", contents=False, below="recursive"),
    "filefrag": Synopsis("-BbeEkPvxX -b?", contents=False),
    "mpstat": Synopsis("-AHnu -I= -N= -P= -T -o= --dec=", "data*"),
    "lspci": Synopsis("-mtvkxbDPn -d= -s= -M? -i=< -vmm! -vvv! -nn! -kk!", ""),
    "lsusb": Synopsis("-vt -s= -d= --verbose --tree", ""),
    "lsmod": Synopsis("", ""),
    "modinfo": Synopsis("-0adlpn -F= -k= --author --description --license --parameters --filename --field= --null"),
    **dict.fromkeys(("domainname", "nisdomainname", "ypdomainname"), Synopsis("", "")),
    "chage": Synopsis("-li --list --iso8601", "data", needs="-l --list"),
    "hwclock": Synopsis("-rluvD --show --get --utc --localtime --verbose", ""),
    # -l shows what stands in people's homes; where people log in from is looked up.
    "pinky": Synopsis("-sfwiq", "data*", needs="-i -q"),
    "validlocale": Synopsis("", "data*"),
    "zramctl": Synopsis("-bn -o= --bytes --noheadings --output= --output-all --raw", ""),
    "skill": Synopsis("-lL --list --table", "", needs="-l -L --list --table"),
    "getfattr": Synopsis("-dhRLP -n= -e= -m= --name= --dump --encoding= --no-dereference --match= --only-values --recursive --logical"
                     " --physical --absolute-names", contents=False, below="recursive", follows="-L --logical"),
    **dict.fromkeys(("loginctl", "loginctl list-sessions", "loginctl list-users", "loginctl list-seats"),
                    Synopsis("-al --all --full --no-legend --no-pager --output= -o=", "")),
    **dict.fromkeys(("loginctl show-session", "loginctl show-user", "loginctl show-seat"),
                    Synopsis("-alp= --all --full --property= --value --no-pager", "data*")),
    **{f"systemd-analyze{verb}": Synopsis("--no-pager --order --require --fuzz= --system --user --no-legend", "data*" if verb else "")
       for verb in ("", " time", " blame", " critical-chain", " plot", " dot")},
    "systemd-cgls": Synopsis("-alkcx -u? --all --full --unit? --user-unit? --xattr? --cgroup-id? --no-pager", "data*"),
    "systemd-cgtop": Synopsis("-bpctmi1kPr -n= -d= --batch --iterations= --delay= --depth= --order= --cpu? --raw --recursive=", "data",
                          needs="-n --iterations -1"),
    "logname": Synopsis("", ""),
    "errno": Synopsis("-lsS --list --search --search-all-locales", "data*"),
    "getconf": Synopsis("-av -v=", "data data", contents=False),
    "getent": Synopsis("", "data data*", check=databases),
    "printenv": Synopsis("-0 --null", "data*", check=printed_variables),
    "tput": Synopsis("-T=", "data*", check=capabilities),
    "dircolors": Synopsis("-bcp --sh --bourne-shell --csh --c-shell --print-database --print-ls-colors", "read"),
    "systemd-detect-virt": Synopsis("-cvrq --container --vm --chroot --private-users --quiet --list --list-cvm --cvm", ""),
    "lsof": Synopsis("-abhlnNOPRtUvVwXx -c= -d= -F? -g? -i? -o? -p= -s? -S? -T? -u= -r?", contents=False, opens=False,
                     check=connections),
    "fuser": Synopsis("-aIlmMsuv46 --all --inode --list-signals --mount --ismountpoint --silent --user --verbose --ipv4 --ipv6",
                  contents=False, opens=False, check=no_ports),
    "netstat": Synopsis("-rigsMvWnNepoclaFCtuwx46 --route --interfaces --groups --statistics --masquerade --verbose --wide --numeric"
                    " --numeric-hosts --extend --programs --program --timers --continuous --listening --all --tcp --udp --raw"
                    " --unix --inet --inet6 --fib --cache", ""),
    "route": Synopsis("-neF46 -A= --numeric --extend", ""),
    "arp": Synopsis("-anve -i= --numeric --all --verbose", ""),
    "routel": Synopsis("-4 -6 -f= --family=", ""),
    "apt": Synopsis("--version -v", "", needs="--version -v"),
    **dict.fromkeys(("apt list", "apt show", "apt search", "apt policy", "apt depends", "apt rdepends"), Synopsis(
        "-aiufn --installed --upgradable --upgradeable --manual-installed --all-versions --names-only --full --installed --no-pager", "data*")),
    **{f"apt-cache {verb}": Synopsis("-anfi --names-only --full --installed --important --recurse --no-all-versions --generate", "data*")
       for verb in ("search", "show", "policy", "depends", "rdepends", "showpkg", "showsrc", "pkgnames", "madison", "stats", "dump", "unmet")},
    "ifconfig": Synopsis("-asv", "data"),
    "ip": Synopsis("-4 -6 -0 -s -d -o -j -p -a -t -br! -brief! -stats! -statistics! -details! -oneline! -json! -pretty! -c? -color! -f= -family=",
               "data*", check=ip),
    "bridge": Synopsis("-s -d -j -p -o -c? -statistics! -details! -json! -pretty! -oneline!", "data*", check=ip),
    "sysctl": Synopsis("-aAXbeNnqxd -r= --all --deprecated --binary --ignore --names --values --pattern= --quiet", "data*", check=settings),
    "taskset": Synopsis("-apc --all-tasks --pid --cpu-list", "data", needs="-p --pid"),
    "chrt": Synopsis("-amp --all-tasks --max --pid", "data", needs="-p --pid -m --max"),
    "ionice": Synopsis("-p= -P= -u= --pid= --pgid= --uid=", "data*", needs="-p -P -u --pid --pgid --uid"),
    "prlimit": Synopsis("-cdefilmnqrstuvxy -p= -o= --pid= --output= --noheadings --raw --verbose --core --data --nice --fsize"
                    " --sigpending --memlock --rss --nofile --msgqueue --rtprio --stack --cpu --nproc --as --locks --rttime", ""),
    "setarch": Synopsis("--list", "", needs="--list"),
    "choom": Synopsis("-p= --pid=", "", needs="-p --pid"),
    "manpath": Synopsis("-qgd --quiet --global --debug", ""),
    "passwd": Synopsis("-S --status", "data", needs="-S --status"),
    "systemd-sysext": Synopsis("--json= --no-legend --no-pager", ""),
    **{f"systemd-sysext {verb}": Synopsis("--json= --no-legend --no-pager", "") for verb in ("list", "status")},
    "systemd-mount": Synopsis("--list --no-legend --no-pager -l --full", "", needs="--list"),
    "prtstat": Synopsis("-r --raw", "data"),
    "slabtop": Synopsis("-o -s= --once --sort=", "", needs="-o --once"),
    "toe": Synopsis("-ahs -u=< -U=<", "read*"),
    "mount": Synopsis("-l -v -t= --show-labels --types= --verbose", ""),
    "swapon": Synopsis("-sv --show? --summary --noheadings --raw --bytes --verbose", "", needs="-s --show --summary"),
    "losetup": Synopsis("-alnJ -O= --all --list --json --noheadings --raw --output=", "", needs="-a -l --all --list"),
    "ldconfig": Synopsis("-pvN --print-cache", "", needs="-p --print-cache"),
    "localedef": Synopsis("--list-archive", "", needs="--list-archive"),
    "mktemp": Synopsis("-dqut -p= --dry-run --directory --quiet --tmpdir? --suffix=", "data", needs="-u --dry-run"),
    "dpkg": Synopsis("-lLsSpVC --list --listfiles --status --search --print-avail --verify --audit --get-selections"
                 " --print-architecture --print-foreign-architectures --compare-versions --no-pager -c=< -I=< --contents=< --info=<",
                 "data*", needs="-l -L -s -S -p -V -C -c -I --list --listfiles --status --search --print-avail --verify --audit"
                 " --get-selections --print-architecture --print-foreign-architectures --compare-versions --contents --info"),
    "dpkg-query": Synopsis("-lLsSpW -f= --list --listfiles --status --search --print-avail --show --showformat= --no-pager", "data*",
                       needs="-l -L -s -S -p -W --list --listfiles --status --search --print-avail --show"),
    "dpkg-deb": Synopsis("-cIfWv --contents --info --field --show --showformat= --verbose", "read data*",
                     needs="-c -I -f -W --contents --info --field --show"),
    "apt-mark": Synopsis("", "data*", check=marks),
    "cal": Synopsis("-13jmsyYChN -d= -H= -A= -B= -n= -Y? -S --one --three --sunday --monday --julian --year --twelve --months= --span --color?"
                " --iso --reform= --week?", "data*"),
    "ncal": Synopsis("-bCehJjMmopSswy31 -A= -B= -d= -H= -m= -s= -W=", "data*"),
}  # fmt: skip

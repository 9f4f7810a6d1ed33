"""Programs that print a text and end, given nothing but one of these options. Each was tried under a system-call trace.

A program that first looks for settings in the folder it runs in is not among them: `hg --version` loads the extensions
and `mvn --version` the options of java that a project names.
`everyday_commands.py --looks` lists what each of these looks up in its folder. `ruby` asks there for links of the names
of its own features (`thread.rb`), and opens none of them.
"""

from __future__ import annotations

_BOTH = """accessdb ack addftinfo addpart addr2line ag agetty apropos apt apt-cache apt-cdrom apt-config apt-get apt-mark
    ar arch arp as awk b2sum base32 base64 basename basenc batcat bc blkdiscard blkid blkzone blockdev brotli btop
    bunzip2 busctl bzcat bzip2 bzless bzmore c++filt c99 cat catman cc cdiff chcon chcpu chgrp chmem chmod choom
    chown chroot cksum clang-format cloc cmake cmp col colcrt colordiff colrm column combinediff comm convert cp
    cpack cpio cpp cppcheck csplit csvclean csvcut csvformat csvgrep csvjoin csvjson csvlook csvpy csvsort csvsql
    csvstack csvstat ctest ctrlaltdel curl cut datamash date dc dd decorate dehtmldiff delpart depmod df diff diff3
    dir dircolors direnv dirname dmesg dos2unix dpkg dpkg-deb dpkg-divert dpkg-fsys-usrunmess
    dpkg-maintscript-helper dpkg-query dpkg-realpath dpkg-split dpkg-statoverride dpkg-trigger du dwp editdiff egrep
    elfedit env envsubst eqn eqn2graph espdiff eu-addr2line eu-ar eu-elfclassify eu-elfcmp eu-elfcompress eu-elflint
    eu-findtextrel eu-make-debug-archive eu-nm eu-objdump eu-ranlib eu-readelf eu-size eu-stack eu-strings eu-strip
    eu-unstrip expand factor fallocate fdfind fgrep file filterdiff fincore find findfs findmnt flipdiff flock fmt
    fold free fsck fsck.cramfs fsck.minix fsfreeze fstrim fzf g++ gawk gawkbug gcc gcc-ar gcc-nm gcc-ranlib gcov
    gcov-dump gcov-tool geqn getconf getent getfacl getfattr getopt gettext gettext.sh gettextize getty git
    glilypond gmake gold gperl gpg gpic gpinyin gprof
    grap2graph grep grepdiff grn grodvi groff grog grolbp grolj4 gropdf grops grotty groups gtbl gunzip
    gzexe gzip hardlink hd head hexdump hexyl hostid hostnamectl hpftodit htop hwclock hyperfine i386 iconv
    iconvconfig id ifconfig in2csv indxbib insmod install interdiff ionice ipcmk ipcrm ipcs ipmaddr iptunnel
    ischroot isosize java javac join journalctl jq kernel-install kmod last lastb ld ld.bfd ld.gold ld.so ldattach
    ldconfig ldd less lessecho lexgrog link linux32 linux64 lkbib ln locale localectl localedef logger loginctl
    logname look lookbib ls lsblk lscpu lsdiff lsfd lsipc lsirq lslocks lslogins lsmem lsns lynx lz4 lz4c lz4cat
    lzmainfo lzop mac2unix make man man-recode mandb manpath mcookie md5sum md5sum.textutils mediainfo mesg meson
    mkdir mkfifo mkfs mkfs.bfs mkfs.cramfs mkfs.minix mknod mkswap mktemp mlr mmroff modinfo modprobe more
    mountpoint msgattrib msgcat msgcmp msgcomm msgconv msgen msgexec msgfilter msgfmt msggrep msginit msgmerge
    msgunfmt msguniq mt-gnu mv namei nano nawk ncdu neqn netstat networkctl ngettext nice nl nm node nohup nproc
    nroff nsenter numfmt objcopy objdump od pandoc parallel partx paste patch patchview pathchk perl perl5.36.0
    perlbug perlthanks pfbtops pg_dump pgrep php pic pic2graph pidwait pigz pinky pip pip3 pivot_root pkill pl2pm
    pldd plipconfig pmap post-grohtml pr preconv printenv prlimit ps psql ptx pv pwdx pzstd qpdf ranlib rdma readelf
    readlink readprofile realpath recode-sr-latin recountdiff rediff refer rename.ul renice resizepart rev rg rgrep
    rm rmdir rmmod rmt-tar route rsync rtcwake ruby run-parts
    runcon runuser script scriptlive scriptreplay sdiff sed seq setarch setfacl setfattr setpci setpriv setsid
    setterm sha1sum sha224sum sha256sum sha384sum sha512sum shasum shellcheck shred shuf size skill slabtop sleep
    snice soelim sort split splitdiff sql2csv ss start-stop-daemon stat stdbuf strace streamzip strings strip stty
    sulogin sum svndiff swaplabel switch_root sync sysctl systemctl systemd systemd-analyze systemd-ask-password
    systemd-cat systemd-cgls systemd-cgtop systemd-creds systemd-cryptenroll systemd-delta systemd-detect-virt
    systemd-escape systemd-firstboot systemd-id128 systemd-inhibit systemd-machine-id-setup systemd-mount
    systemd-notify systemd-path systemd-repart systemd-run systemd-socket-activate
    systemd-sysext systemd-sysusers systemd-tmpfiles systemd-tty-ask-password-agent systemd-umount tac tail tar
    tarcat taskset tbl tee tempfile tfmtodit tidy tig timedatectl timeout tload touch tr tree troff truncate tsort
    tty tzselect uchardet uclampset ul uname uncompress unexpand uniq units unix2dos unix2mac unlink unlz4 unpigz
    unrar unshare unwrapdiff unxz unzstd update-alternatives uptime usbhid-dump users utmpdump vdir view
    vim vmstat w wall watch wc wdctl wdiff wget whatis whereis who whoami wipefs write xargs xgettext xmlstarlet
    xtotroff xz xzcat xzcmp xzdiff xzegrep xzfgrep xzgrep xzless xzmore yamllint yes zcat zcmp zdiff zdump zegrep
    zfgrep zforce zgrep zic zip zipcloak zless zmore znew zramctl zstd zstdcat zstdmt"""
_HELP = """7z 7za 7zr chage chfn chgpasswd chpasswd chsh dcb duf errno exiftool expiry faillog gofmt gpasswd groupadd
    groupdel groupmems groupmod grpck grpconv grpunconv isutf8 lastlog lsb_release newusers openssl optscript passwd
    pdfinfo pdftotext pod2man pwck pwconv pwunconv readtags strace-log-merge unzip update-locale
    update-shells useradd userdel usermod vdpa vigr vipw"""
_VERSION = """chrt corelist dnsdomainname domainname encguess fixcvsdiff fuser gdiffmk hostname
    identify killall lesskey lspci lsusb mii-tool mogrify ninja nisdomainname nstat pager pre-grohtml prtstat
    pslog pstree pstree.x11 pydoc3 pygettext3 slattach sqlite3 toilet ugrep xmllint xxd ypdomainname zipdetails
    zstdless"""
_H = """7z 7za 7zr accessdb addpart addr2line ag apropos apt apt-cache apt-cdrom apt-config apt-get apt-mark ar arp awk
    batcat bc blkdiscard blkid blkzone blockdev brotli btop bunzip2 busctl bzcat bzip2 c++filt c_rehash catman cdiff
    chage chcpu chgpasswd chmem choom chpasswd chsh clang-format cmake colcrt colrm column convert cpack cpgr
    cppcheck cppw csvclean csvcut csvformat csvgrep csvjoin csvjson csvlook csvpy csvsort csvsql csvstack csvstat
    ctest ctrlaltdel curl dc dcb delpart depmod dmesg dos2unix dpkg-maintscript-helper duf dwp elfedit envsubst
    errno exiftool expiry faillog fallocate fdfind fincore findfs findmnt flock fsck.cramfs fsck.minix fsfreeze
    fstrim fzf gawk gcc-ar gcc-nm gcc-ranlib gcov gcov-dump gcov-tool getfacl getopt gettext git glilypond
    gmake gofmt gpasswd gperl gpg gpinyin gprof groff grog grolbp groupadd groupdel groupmems
    groupmod grpck grpconv grpunconv gunzip gzip hardlink hd hexdump hexyl hostnamectl htop hwclock hyperfine i386
    ifconfig in2csv insmod ionice ipcmk ipcrm ipcs ipmaddr iptunnel ischroot isosize isutf8 java journalctl jq
    kernel-install kmod last lastb lastlog ldattach lexgrog linux32 linux64 localectl logger loginctl look
    lsb_release lsblk lscpu lsfd lsipc lsirq lslocks lslogins lsmem lsns lz4 lz4c lz4cat lzop mac2unix make man
    man-recode mandb manpath mcookie mediainfo mesg meson mkfs mkfs.bfs mkfs.cramfs mkfs.minix mkswap mlr mmroff
    modinfo modprobe more mountpoint msgattrib msgcat msgcmp msgcomm msgconv msgen msgexec msgfilter msgfmt msggrep
    msginit msgmerge msgunfmt msguniq namei nano nawk ncdu netstat networkctl newusers ngettext nm node nsenter
    objcopy openssl optscript pandoc parallel partx passwd pdfinfo pdftotext perl perl5.36.0 perlbug perlthanks
    pgrep php pidwait pigz pip pip3 pivot_root pkill plipconfig pmap pod2man pre-grohtml preconv prlimit pv pwck
    pwconv pwdx pwunconv pzstd ranlib rdma readprofile readtags recode-sr-latin rediff rename.ul renice resizepart
    rev rg rmmod route rsync rtcwake ruby run-parts runuser
    savelog script scriptlive scriptreplay setarch setfacl setpriv setsid shasum skill slabtop snice sql2csv ss
    strace streamzip strings strip sulogin swaplabel switch_root sysctl systemctl systemd systemd-analyze
    systemd-ask-password systemd-cat systemd-cgls systemd-cgtop systemd-creds systemd-cryptenroll systemd-delta
    systemd-detect-virt systemd-escape systemd-firstboot systemd-id128 systemd-inhibit systemd-machine-id-setup
    systemd-mount systemd-notify systemd-path systemd-repart systemd-run systemd-socket-activate
    systemd-sysext systemd-sysusers systemd-tmpfiles systemd-tty-ask-password-agent
    systemd-umount tarcat taskset tc tidy tig timedatectl tload uchardet uclampset ul uncompress units
    unix2dos unix2mac unlz4 unpigz unshare unxz unzip unzstd update-locale uptime usbhid-dump useradd userdel
    usermod utmpdump vdpa view vigr vim vipw vmstat w3m wall watch wdctl wdiff wget whatis whereis wipefs
    write xgettext xz xzcat yamllint zcat zip zipcloak zramctl zstd zstdcat zstdmt"""
_V = """accessdb addpart addr2line ag apropos ar arp awk batcat blkdiscard blkid blkzone blockdev bridge brotli bunzip2
    bzcat bzip2 bzless bzmore captoinfo catman cdiff chcpu chmem choom chrt clear col colcrt colrm column convert
    csvclean csvcut csvformat csvgrep csvjoin csvjson csvlook csvpy csvsort csvsql csvstack csvstat ctrlaltdel curl
    dc dcb debugfs delpart depmod devlink dmesg dnsdomainname domainname dos2unix dot dumpe2fs dwp e2fsck
    e2mmpstatus egrep envsubst eu-addr2line eu-ar eu-elfclassify eu-elfcmp eu-elfcompress eu-elflint eu-findtextrel
    eu-nm eu-objdump eu-ranlib eu-size eu-stack eu-strings eu-strip eu-unstrip fallocate fdfind fgrep filefrag
    fincore findfs findmnt flock free fsck.cramfs fsck.ext2 fsck.ext3 fsck.ext4 fsck.minix fsfreeze fstrim
    fuser gawk gcc-ar gcc-nm gcc-ranlib genl getent getopt gettext gold
    grep gunzip gzip hardlink hd hexdump hexyl hostname htop hwclock hyperfine i386 iconv iconvconfig ifconfig
    in2csv infocmp infotocap insmod ionice ip ipcmk ipcrm ipcs ipmaddr iptunnel ischroot isosize jq json_pp killall
    kmod last lastb ld ld.bfd ld.gold ldattach ldconfig lesskey lexgrog linux32 linux64 locale localedef logger look
    lsattr lsblk lscpu lsfd lsipc lsirq lslocks lslogins lsmem lsns lsof lz4 lz4c lz4cat lzop mac2unix man
    man-recode mandb manpath mcookie mesg mii-tool mke2fs mkfs mkfs.bfs mkfs.cramfs mkfs.ext2 mkfs.ext3 mkfs.ext4
    mkfs.minix mkswap mktemp modinfo modprobe more mountpoint msgattrib msgcat msgcmp msgcomm msgconv msgen msgexec
    msgfilter msgfmt msggrep msginit msgmerge msgunfmt msguniq mt-gnu namei nano nawk ncdu netstat ngettext
    nisdomainname nm nsenter nstat objcopy objdump parallel partx perl perl5.36.0 pg_dump pgrep pidwait pigz pip
    pip3 pivot_root pkill pldd plipconfig pmap prlimit prtstat ps pslog psql pstree pstree.x11 pv pwdx
    pygettext3 pzstd ranlib rdma readprofile recode-sr-latin rename.ul renice reset resizepart rev rg rgrep rmmod
    rmt-tar route rsync rtacct rtcwake rtmon run-parts runuser script scriptlive scriptreplay setarch setpriv setsid
    shellcheck size skill slabtop slattach snice sql2csv ss ssh start-stop-daemon strace streamzip strings strip
    sulogin swaplabel switch_root sysctl tabs taskset tc tic tidy tload tmux toe tput tset uclampset ugrep ul
    uncompress units unix2dos unix2mac unlz4 unpigz unrar unshare unxz unzstd uptime utmpdump vdpa vmstat w w3m wall
    wdctl wget whatis whereis wipefs write xgettext xz xzcat xzegrep xzfgrep xzgrep ypdomainname zcat zegrep zfgrep
    zgrep zramctl zstd zstdcat zstdmt"""

TELLS: dict[str, str] = {"--help": f"{_BOTH} {_HELP}", "--version": f"{_BOTH} {_VERSION}", "-h": _H, "-V": _V}

"""The scripts by which a command is run on another host. It needs `setsid`, `mkfifo`, `dd`, `grep`, `head`, `timeout`.

The first script starts a supervisor that is detached from the transport, and each later one is short. The supervisor
works in a folder of its own:

    0 1 2 ...   the output in pieces of at most 64 KB; the next poll removes those that were taken
    in, out     pipes to and from the command
    session     the process id of the command, which is also its session
    holder      the process that keeps the input open
    lease       made anew by each poll; where it is missing for a minute, nobody listens any more
    end         exit code, and the number of processes that the command left running; written last

If 2 MB of output were not taken, the command waits in its `write`, as before any full pipe. If nobody polls, because
this program was killed, the supervisor ends the command. A process belongs to the command if it is in its session,
has the mark, the folder's name, in its environment, or prints into `out`.
"""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

NO_FOLDER, GONE = 79, 78  # exit codes of our scripts
MARK = "TOOLCRIB_PROCESS"
PIECES = 16  # pieces of output that one poll gives
PATIENCE = 40  # steps that a poll waits for output, 3 seconds in all
LEASE = 60  # seconds without a poll after which the command is ended

MEMBERS = r"""
members() {
  read -r session < "$d/session" 2>/dev/null || return
  marked=$(grep -lzF "TOOLCRIB_PROCESS=$d" /proc/[0-9]*/environ 2>/dev/null)
  for f in /proc/[0-9]*/stat; do
    { read -r line < "$f"; } 2>/dev/null || continue
    set -- ${line##*) }
    [ "$1" != Z ] || continue
    p=${f%/stat}
    if [ "$4" = "$session" ] || [ "$p/fd/1" -ef "$d/out" ] || [ "$p/fd/2" -ef "$d/out" ]; then
      echo "${p##*/}"; continue
    fi
    case "
$marked
" in *"
$p/environ
"*) echo "${p##*/}";; esac
  done
}
finish() {
  m=$(members); [ -n "$m" ] || return
  kill -TERM $m 2>/dev/null; kill -CONT $m 2>/dev/null
  i=0; while [ $i -lt "$1" ] && m=$(members) && [ -n "$m" ]; do sleep 0.1; i=$((i+1)); done
  i=0; while [ $i -lt 40 ] && m=$(members) && [ -n "$m" ]; do
    kill -KILL $m 2>/dev/null; sleep 0.05; i=$((i+1))
  done
}
"""

SUPERVISE = (
    MEMBERS
    + r"""
d=$1 input=$2 grace=$3 lease=$4
work=$(cat)
mkfifo "$d/in" "$d/out" || exit
relay() {
  n=0
  while dd bs=65536 count=1 of="$d/part" 2>/dev/null && [ -s "$d/part" ]; do
    mv -f "$d/part" "$d/$n"; n=$((n+1))
    while [ -e "$d/$((n-32))" ]; do sleep 0.05; done
  done
  : > "$d/relayed"
}
watch() {
  while sleep "$lease"; do
    [ -e "$d/lease" ] || { finish "$grace"; sleep 5; rm -rf "$d"; kill -KILL 0; }
    rm -f "$d/lease"
  done
}
relay < "$d/out" & relay=$!
watch & watch=$!
if [ "$input" = yes ]; then
  sleep 99999999 > "$d/in" & holder=$!
  echo $holder > "$d/holder"
  from=$d/in
else
  from=/dev/null
fi
setsid sh -c 'echo $$ > "$1/session.new"; mv -f "$1/session.new" "$1/session"
TOOLCRIB_PROCESS=$1; export TOOLCRIB_PROCESS
TOOLCRIB_WORK=$(cat <&3); exec 3<&-; eval "unset TOOLCRIB_WORK
$TOOLCRIB_WORK"' toolcrib "$d" < "$from" > "$d/out" 2>&1 3<<END &
$work
END
work=
wait $!; code=$?
[ "$input" != yes ] || kill $holder 2>/dev/null
i=0; while [ $i -lt 3 ] && [ -n "$(members)" ]; do sleep 0.05; i=$((i+1)); done
left=$(members | wc -l)
[ "$left" -eq 0 ] || finish "$grace"
# What hides from both signs may hold the output open; what waits to be taken is waited for.
i=0; while [ ! -e "$d/relayed" ]; do
  [ $i -lt 20 ] || ls "$d" | grep -q '^[0-9]' || break
  sleep 0.02; [ $i -ge 20 ] || i=$((i+1))
done
rm -f "$d/session"  # its number may soon be another process's
echo "$code $((left))" > "$d/end.new"; mv -f "$d/end.new" "$d/end"
kill -TERM $relay 2>/dev/null
wait $watch
"""
)

# Takes what there is, or waits for the first of it; a moment more, since many commands end with their first output.
# The command can write to the folder too, so no more is read of a file than we write into it, and nothing of a link.
TAKE = (
    r"""
{ true > "$d/lease"; } 2>/dev/null || exit 78
i=0
while [ ! -e "$d/$k" ] && [ ! -f "$d/end" ] && [ $i -lt "$patience" ]; do
  if [ $i -lt 10 ]; then sleep 0.01; elif [ $i -lt 30 ]; then sleep 0.05; else sleep 0.2; fi; i=$((i+1))
done
i=0; while [ ! -f "$d/end" ] && [ $i -lt 4 ] && [ $patience -gt 0 ]; do sleep 0.02; i=$((i+1)); done
ended="- 0"
if [ -f "$d/end" ]; then ended=$(head -c 40 "$d/end"); fi
next=$k; while [ -e "$d/$next" ] && [ $((next-k)) -lt PIECES ]; do next=$((next+1)); done
if [ -e "$d/$next" ]; then ended="- 0"; fi
echo "$next $ended"
while [ $k -lt $next ]; do if [ -f "$d/$k" ] && [ ! -L "$d/$k" ]; then head -c 65536 "$d/$k"; fi; k=$((k+1)); done
if [ "$ended" != "- 0" ]; then read -r s < "$d/supervisor"; rm -rf "$d"; kill -KILL "-$s" 2>/dev/null; fi
exit 0
"""
).replace("PIECES", str(PIECES))


def start(name: str, folder: str, *, input: bool, grace: float, lease: int = LEASE) -> str:
    """Starts what stands in the standard input, a script for `sh`, and gives its first output.

    `name` is of letters and digits, and names the command in the later scripts.
    """
    return (
        f"cd -- {quote(folder)} 2>/dev/null || exit {NO_FOLDER}\n"
        f'{_place(name)}\nmkdir -m 700 "$d" || exit\n'
        "work=$(cat)\n"
        # The first shell of the pipeline only writes; the second becomes the supervisor.
        'printf \'%s\' "$work" | setsid sh -c \'echo $$ > "$1/supervisor"; exec sh -c "$0" toolcrib "$@"\''
        f' {quote(SUPERVISE)} "$d" {"yes" if input else "no"} {_steps(grace)} {lease} >/dev/null 2>&1 &\n'
        f"k=0 patience={PATIENCE}\n{TAKE}"
    )


def poll(name: str, taken: int, dropped: int) -> str:
    """Gives the output from a piece on, and drops the pieces before it, which were taken."""
    return (
        f"{_place(name)} k={dropped} patience={PATIENCE}\n"
        f'while [ $k -lt {taken} ]; do rm -f "$d/$k"; k=$((k+1)); done\n{TAKE}'
    )


def stop(name: str, grace: float) -> str:
    """Ends the command with everything that it started: SIGTERM, and SIGKILL after `grace` seconds."""
    return (
        f"{_place(name)}\n{MEMBERS}\n"
        'i=0; while [ -e "$d/supervisor" ] && [ ! -e "$d/session" ] && [ ! -e "$d/end" ] && [ $i -lt 20 ]; do\n'
        "sleep 0.05; i=$((i+1)); done\n"
        f"finish {_steps(grace)}"
    )


def write(name: str, seconds: float) -> str:
    """Writes the standard input, at most 4096 bytes, into that of the command: all of it, or nothing."""
    return f'{_place(name)}\ntimeout {max(1, round(seconds))} sh -c \'cat > "$1/in"\' toolcrib "$d"'


def end_input(name: str) -> str:
    return f'{_place(name)}\nread -r holder < "$d/holder" && kill "$holder"'


def look_at(paths: Sequence[str], most: int) -> str:
    """Prints of each path that is a regular file a line `index size digest`, and then `size` bytes, `most` at most."""
    names = " ".join(quote(path if path.startswith("/") else f"./{path}") for path in paths)
    return (
        f'i=0; for p in {names}; do if [ -f "$p" ]; then\n'
        f'n=$(head -c {most} < "$p" | wc -c); s=$(sha256sum < "$p")\n'
        'echo "$i $((n)) ${s%% *}"; head -c "$((n))" < "$p"; fi; i=$((i+1)); done'
    )


def _place(name: str) -> str:
    return f'd="${{TMPDIR:-/tmp}}/toolcrib-{name}"'


def _steps(grace: float) -> int:
    return max(0, round(grace / 0.15))  # a tenth of a second, and the time that it takes to look

"""The shell tool, its judge, the policy and the sandbox together: what runs unasked, what asks, what never runs."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Callable
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.cases import each
from tests.sandbox_runs import BACKENDS, backend, run
from toolcrib import Toolbox
from toolcrib.access import Reach
from toolcrib.call import ToolCall
from toolcrib.command.sandbox import (
    ExternalSandbox,
    Files,
    Launch,
    Level,
    Network,
    NoSandbox,
    Sandbox,
    choose,
)
from toolcrib.context import Context
from toolcrib.errors import ErrorCode, ToolError
from toolcrib.prepared import Pending, Prepared, Ready
from toolcrib.question import Answer, Lasting, Question, Scope, Verdict
from toolcrib.rules import CommandPattern, PathPattern, Rule, RulePolicy, read_rules
from toolcrib.toolbox.policy import Verb
from toolcrib.tools import Shell, ShellParams, Workspace

BASH = shutil.which("bash", path="/bin:/usr/bin:/usr/local/bin") or ""

Approve = Callable[[Question], Answer | None]


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    root = tmp_path / "ws"
    for folder in ("sub", "secrets", "build"):
        (root / folder).mkdir(parents=True)
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    (root / "sub" / "b.c").write_text("b\n")
    (root / "secrets" / "plan").write_text("hidden\n")
    (root / "build" / "out").write_text("")
    return Workspace(root)


SANDBOXES = [*BACKENDS, "wanted none", "none"]


def sandbox_of(name: str, ws: Workspace) -> Sandbox:
    if name == "wanted none":
        return NoSandbox()
    made: Sandbox = choose(ws.root.path, order=[]) if name == "none" else backend(name)(ws.root.path)
    return made


def boxed(
    ws: Workspace, sandbox: Sandbox | None = None, approve: Approve | None = None, **named: Any
) -> Toolbox:
    async def approver(question: Question) -> Answer | None:
        return approve(question) if approve is not None else None

    shell = Shell(ws, sandbox=sandbox or NoSandbox(), grace=0.3)
    return Toolbox([shell], approver=approver if approve is not None else None, **named)


async def prepared(box: Toolbox, command: str, **named: Any) -> Prepared:
    return await box.prepare(ToolCall("shell", {"command": command, **named}))


def params_of(command: str, **named: Any) -> ShellParams:
    return ShellParams(command=command, **named)


PLAIN = ["ls -la", "cat a.txt | wc -l", "cd sub && cat b.c", "git status 2>/dev/null", "LC_ALL=C sort a.txt", "grep -rn x . | head -3", "echo $(cat a.txt)"]  # fmt: skip
ASKS = [
    "rm a.txt", "echo x > a.txt", "for f in *; do cat $f; done", "cat /etc/hostname", "cat ../x", "LD_PRELOAD=x ls", "PATH=. ls",
    "git -c core.pager=x log", "sudo ls", "python3 -c 'print(1)'", "bash script.sh", "mytool", "cat .env", "sleep 1 &", "curl http://127.0.0.1",
]  # fmt: skip
NEVER = ["rm -rf /", ":(){ :|:& };:", "sudo rm -rf --no-preserve-root /", "bash -c 'rm -rf /*'", "ls\u200b", "cat a\u202etxt.sh"]  # fmt: skip
RUNS, ASKED, DENIED = "ready", "pending", "refused"
BY_AUTONOMY = {"supervised": (RUNS, ASKED), "full": (RUNS, RUNS), "read_only": (RUNS, DENIED)}
WITH_NONE = {"supervised": (ASKED, ASKED), "full": (ASKED, ASKED), "read_only": (DENIED, DENIED)}


@pytest.mark.promise("security.md", "what would destroy the machine is refused under both")
@pytest.mark.parametrize("autonomy", BY_AUTONOMY)
@pytest.mark.parametrize("name", SANDBOXES)
async def test_what_runs_what_asks_and_what_never_runs(ws: Workspace, name: str, autonomy: str) -> None:
    box = boxed(ws, sandbox_of(name, ws), autonomy=autonomy)
    plain, asks = (WITH_NONE if name == "none" else BY_AUTONOMY)[autonomy]
    wanted = {**dict.fromkeys(PLAIN, plain), **dict.fromkeys(ASKS, asks), **dict.fromkeys(NEVER, DENIED)}
    assert {command: (await prepared(box, command)).kind for command in wanted} == wanted


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("rm a.txt", "rm changes files"),
        ("LD_PRELOAD=x ls", "sets LD_PRELOAD"),
        ("case a in a) ls;; esac", "a case statement"),
        ("cat /etc/hostname", "outside the workspace"),
    ],
)
async def test_the_question_says_why(ws: Workspace, command: str, said: str) -> None:
    asked = await prepared(boxed(ws), command)
    assert isinstance(asked, Pending)
    assert said in asked.question.reason and "\n" not in asked.question.reason


async def test_the_question_names_a_variable_that_is_given_beside_the_command(ws: Workspace) -> None:
    asked = await prepared(boxed(ws), "ls", env={"PYTHONPATH": "src"})
    assert isinstance(asked, Pending)
    assert asked.question.reason == "it sets PYTHONPATH, which changes what programs load or run; it runs ls"


async def test_what_never_runs_is_told_why(ws: Workspace) -> None:
    refused = await boxed(ws, autonomy="full").call("shell", {"command": "rm -rf / --no-preserve-root"})
    assert refused.is_error and "deletes /" in refused.text


async def test_without_a_sandbox_one_question_is_asked_and_not_two(ws: Workspace) -> None:
    for autonomy in ("supervised", "full"):
        asked: list[str] = []

        def yes(question: Question, asked: list[str] = asked) -> Answer:
            asked.append(question.reason)
            return Answer(Verdict.YES)

        box = boxed(ws, sandbox_of("none", ws), yes, autonomy=autonomy)
        done = await box.call("shell", {"command": "cat a.txt"})
        assert not done.is_error and done.text == "one\ntwo\nthree"
        assert len(asked) == 1 and "no sandbox works here" in asked[0]


async def test_without_a_sandbox_no_rule_lets_a_command_run_unasked(ws: Workspace) -> None:
    policy = RulePolicy("full", [Rule(verb=Verb.ALLOW, commands=(CommandPattern("ls *"),))])
    assert (await prepared(boxed(ws, sandbox_of("none", ws), policy=policy), "ls")).kind == ASKED


# Rules.


def deny_paths(*patterns: str, reach: frozenset[Reach] = frozenset()) -> Rule:
    return Rule(verb=Verb.DENY, paths=tuple(map(PathPattern, patterns)), reach=reach)


SECRETS = [
    ("cat secrets/plan", DENIED), ("cat ./secrets//plan | wc -l", DENIED), ("cd secrets && cat plan", DENIED),
    ("cat < secrets/plan", DENIED), ("echo x > secrets/new", DENIED), ("rm -rf secrets", DENIED),
    ("bash -c 'cat secrets/plan'", DENIED), ("echo \"$(cat secrets/plan)\"", DENIED), ("timeout 5 cat secrets/plan", DENIED),
    ("diff a.txt SECRETS/plan", DENIED), ("head -c 5 secrets/plan", DENIED), ("cat missing/../../x secrets/plan", DENIED),
    ("grep -r x .", ASKED), ("ls -R", ASKED), ("find . -name '*.c'", ASKED), ("rm -rf ./*", ASKED), ("ls ./*", ASKED),
    ("mytool secrets/plan", ASKED), ("mytool --in=secrets/plan", ASKED), ("for f in secrets/*; do cat $f; done", DENIED), ("echo secrets/*", DENIED), ("git ls-files | xargs cat", ASKED),
    ("ls secrets | xargs cat", DENIED), ("ls | xargs -I{} cat secrets/{}", ASKED), ("for f in secrets/*; do echo \"$f\"; done", DENIED),
    ("x=secrets; cat $x/plan", DENIED), ("x=$(ls); cat $x/plan", ASKED), ("mytool .", ASKED), ("for f in *; do cat $f/plan; done", ASKED),
    ("cat a.txt", RUNS), ("grep -r x sub", RUNS), ("cat sub/*.c", RUNS), ("echo secrets", RUNS), ("rm a.txt", RUNS),
]  # fmt: skip


@pytest.mark.promise("shell-commands.md", "so that path rules bind a shell as they bind the file tools")
@pytest.mark.parametrize(("command", "wanted"), SECRETS)
async def test_rules_on_paths_bind_the_operands_of_commands(ws: Workspace, command: str, wanted: str) -> None:
    box = boxed(ws, policy=RulePolicy("full", [deny_paths("secrets/**")]))
    assert (await prepared(box, command)).kind == wanted


SCRIPTS = {
    "sed -n wsecrets/plan a.txt": ASKED, "sed 's/a/b/wsecrets/new' a.txt": ASKED, "sudo sed '1Rsecrets/plan' a.txt": ASKED, "sed -nfsecrets/plan a.txt": ASKED, "sed -i '' rsecrets/plan a.txt": ASKED,
    "bash -c 'sed -e rsecrets/plan a.txt'": ASKED, "for f in *; do sed -n Wsecrets/new $f; done": ASKED, "find . -exec sed -n wsecrets/new {} +": ASKED, "sed --expr=wsecrets/new a.txt": ASKED, "sed 'a\\\\\nb' a.txt": ASKED,
    "sed -n '/x/w build/out' a.txt": RUNS, "sed -i 's/secrets/b/;s/[^/]*$//;/a/r sub/b.c' a.txt": RUNS, "sed '1a\\\nwsecrets/new' a.txt > b.txt": RUNS,
}  # fmt: skip


async def test_an_ask_rule_on_a_path_sees_the_files_of_a_script_of_sed(ws: Workspace) -> None:
    rule = Rule(verb=Verb.ASK, paths=(PathPattern("secrets/**"),))
    box = boxed(ws, sandbox_of("bubblewrap", ws), policy=RulePolicy("full", [rule]))
    assert {command: (await prepared(box, command)).kind for command in SCRIPTS} == SCRIPTS


async def test_paths_count_from_the_folder_that_the_command_runs_in(ws: Workspace) -> None:
    box = boxed(ws, policy=RulePolicy("full", [deny_paths("secrets/**")]))
    assert (await prepared(box, "cat plan", workdir="secrets")).kind == DENIED
    assert (await prepared(box, "cat plan", workdir="sub")).kind == RUNS
    assert (await prepared(box, "grep -r x .", workdir="sub")).kind == RUNS
    assert (await prepared(box, "mytool plan", workdir="secrets")).kind == ASKED


async def test_a_rule_on_writing_lets_reading_be(ws: Workspace) -> None:
    rule = deny_paths("build/**", reach=frozenset({Reach.WRITE, Reach.DELETE}))
    box = boxed(ws, policy=RulePolicy("full", [rule]))
    wanted = {
        "cat build/out": RUNS,
        "rm -rf build": DENIED,
        "echo x > build/out": DENIED,
        "mytool build": ASKED,
    }
    assert {command: (await prepared(box, command)).kind for command in wanted} == wanted


NO_RM = [
    "rm x", "/bin/rm x", "ls; rm x", "ls | rm x", "ls && (cd sub; rm x)", "sudo rm x", "sudo -u root rm x", "env A=b rm x", "timeout 5 rm x",
    "bash -c 'rm x'", "sh -c \"ls; rm x\"", "eval 'rm x'", "for f in *; do rm $f; done", "if true; then rm x; fi", "f() { rm x; }; f",
    "find . -exec rm {} +", "find . -print0 | xargs -0 rm", "echo $(rm x)", "command rm x", "nohup rm x", "'r'm x", "\\rm x", "rm *.o", "xargs rm < a.txt",
    "uv run rm x", "nice -n 5 rm x", "ls & rm x", "cat <(rm x)", "bash -c 'bash -c \"rm x\"'", "{ rm x; }", "! rm x", "time rm x", "rm $x",
    "script -c 'rm x'", "su -c 'rm x'", "bash -x -c 'rm x'", "env -S 'rm x'", "git submodule foreach rm x", "git -c alias.x='!rm x' x", "trap 'rm x' EXIT",
    "env - rm x", "python3 -c 'import os; os.system(\"rm x\")'", "python3 -c 'run([\"rm\", \"x\"])'", "perl -e 'system(\"rm x\")'", "perl -e 'exec qw(rm x)'", "hyperfine 'rm x'",
    "awk 'BEGIN{system(\"rm x\")}'", "sed '1e rm x' a.txt", "sed -n -e '/a/{erm x' -e '}' a.txt", "sed -i.bak --expression='s/[e]/z/;/b/I,+2! e ls; rm x' a.txt", "sed -f - a.txt <<E\ne rm x\nE", "echo 'e rm x' | sudo sed -nf- a.txt", "sed -e 'i\\' -f a.sed -e 'e rm x' a.txt", "find . -exec sed '\\,a,e rm x' {} +", "valgrind rm x", "perf stat -- rm x", "proxychains4 -q rm x", "git rebase -x 'rm x' HEAD",
    "git bisect run rm x", "git rebase --exec='rm x' HEAD", "git filter-branch --tree-filter 'rm x'", "git -c core.editor='rm x' commit",
    "git config alias.x '!rm x'; git x", "printf -v 'a[$(rm x)]' 1", "let 'a[$(rm x)]=1'", "test -v 'a[$(rm x)]'",
    "git -calias.x='!rm x' x", "git grep -O'rm x' a", "git difftool -x 'rm x'", "git rebase -ix 'rm x' HEAD", "git clone -u 'rm x' . y", "git -ccore.pager='rm x' log",
    "git fetch --upload-pack='rm x' .", "git ls-remote --upload-pack 'rm x' .", "git archive --exec='rm x' HEAD", "tar --to-command='rm x' -xf a.tar", "sort --compress-program=rm a.txt",
    "rsync -e 'rm x' a h:b", "rsync -ave 'rm x' a h:b", "rsync --rsync-path='rm x' a h:b", "split --filter='rm x' a.txt", "split --filter=rm a.txt", "man -P 'rm x' ls", "man -P rm ls",
    "git ls-remote 'ext::rm x'", "git clone 'ext::sh -c \"rm x\"' y", "scp -S rm a h:b", "ssh -o 'ProxyCommand=rm x' h", "scp -oProxyCommand='rm x' a h:b", "tar -I 'rm x' -cf a.tar a",
    "go test -exec 'rm x' ./...", "rg --pre rm a", "nc -e 'rm x' h 1", "npm --script-shell='rm x' test", "sort -T . --compress-program 'rm x' a.txt",
    "python3 -c 'import os; os.system(\"r\" + \"m x\")'", "python3 -c 'exec(\"import os; os.system(\\\"rm x\\\")\")'", "python3 -c 'from subprocess import call as c; c([\"rm\", x])'",
    "python3 <<< 'import os; os.system(\"rm x\")'", "echo 'import os; os.system(\"rm x\")' | python3", "perl <<< 'system(\"rm x\")'", "echo 'rm x' | sh", "bash <<< 'rm x'",
    "python3 - <<E\nimport os\nos.system('rm x')\nE", "node -e \"require('child_process').spawnSync('rm',['x'])\"", "Rscript -e 'system(\"rm x\")'", "julia -e 'run(`rm x`)'",
    "pkexec rm x", "pkexec --user root rm x", "run0 rm x", "toybox rm x", "bundle exec rm x", "pnpm exec rm x", "pnpm -r exec rm x", "yarn exec rm x", "npm exec -c 'rm x'", "npx -c 'rm x'",
    "cargo watch -s 'rm x'", "cargo watch -- rm x", "/lib64/ld-linux-x86-64.so.2 /bin/rm x", "/lib/ld-musl-x86_64.so.1 /bin/rm x", "wine rm x", "mise exec node@20 -- rm x", "mise x -c 'rm x'",
    "gdb --args rm x", "lldb -- rm x", "fd -x rm", "cmake -E env rm x", "ip netns exec a rm x", "nix develop -c rm x", "nix-shell --run 'rm x'", "xterm -e rm x", "bwrap --bind / / rm x",
    "conda run -n a rm x", "uv run --with a rm x", "runuser -u bob rm x", "runuser -u bob -- rm x", "systemd-run --user -p A=1 rm x", "ssh -p 22 h rm x", "ssh -- h rm x", "chroot -- . rm x", "timeout 5 -- rm x", "systemd-run --user rm x", "run0 --user bob rm x", "time { rm x; }", "env -- rm x", "flock f -- rm x", "ssh -i k h rm x", "ssh -t -i k u@h 'rm x'", "ssh h 'rm x'", "perf record -g rm x", "su - bob -c 'rm x'", "flock f -c 'rm x'", "exec -a n rm x", "command -p rm x", "wine cmd /c rm x", "env -S'rm x'", "find . ! -name a ! -name b -exec env rm {} +",
    "echo 'import os; os.system(\"rm x\")' | sudo -u bob python3 -", "perl -e'system(\"rm x\")'", "ruby -e '%x(rm x)'", "node --eval=\"require('child_process').execSync('rm x')\"", "git grep -Orm a",
    "watchexec -e py rm x",
    "sudo env nice nohup timeout 5 setsid ionice command rm x", "sudo mise exec -- timeout 5 rm x", "timeout 5 sh -c 'rm x'", "uv run bash -c 'rm x'",
    "tmux new -d 'rm x'", "chroot . rm x", "flock f rm x", "$'r''m' x", "rm${IFS}x", "coproc rm x", "echo `rm x`", "ls &&\\\nrm x", ">f rm x",
    "cat missing/../../x; rm x", "export A=1; rm x", "A=1 rm x", "env A=1 B=2 sudo rm x", "[ -n \"$x\" ] && rm x", "rm ~/x &", "touch {a,b}; rm x", "cat > f <<E; rm x\nx\nE",
    "perl -e 'qx{rm x}'", "perl -e 'exec qw/rm x/'", "ruby -e '%x[rm x]'", "touch {a,b}; {rm,x}", "x=rm; read x < a.txt; $x y", "[ -v 'a[$(rm x)]' ]", "trap $'rm\\tx' EXIT", "ssh h $'ls\\nrm\\tx'", "watch 'rm;ls'", "timeout 5 bash -c 'A=1 rm x'",
    # A backslash continues no line in a comment or in quotes, nor behind another backslash.
    "ls & # a\\\nrm x", "ls # a\\\n# \\\n\\r'm' x", "bash -c 'ls # a\\\nrm x' &", "x=1 # \\\nrm x; $x y", "for f in *; do ls; done # \\\nrm x", "ls & echo a\\\\\nrm x", "r\\\nm x &", "ls & # \\\nr\\\nm x", "ls & # \\\nls x\\\n#; r\\\nm x",
    "sed '#\\\ne rm x' a.txt &", "echo \"$(ls # \\\nrm x\n)\" &", "ls &\\\n\\\n rm \\\n x",
    # The parser takes a line that begins with a backslash for words of the line before it.
    "ls\n\\rm x", "ls #\"\n\n\\rm x", "(ls\n\\rm x)", "f() { ls\n\\rm x\n}; f", "ls & a=b # c\n\\r'm' x", "cat <<E\n\\a\n\\b\nE\n\\rm x", "ls\n\\\n\\rm x", "echo $(ls\n\\rm x)", "bash -c 'ls\n\\rm x'",
    # The parser joins the line behind these to the command.
    "n =~\nrm", "ls a ==\nrm x", "(ls == # c\nrm x)", "ls =~ \\\n\nrm x", "x=1 ls == >f\nrm x",
    # Where the text cannot be parsed, nobody knows which lines continue others.
    "case t in \\\") { t<<'E'\n\\\nE\n};esac #\\\n$((rm) )",
    # Words behind a redirection, which the parser takes for parts of it.
    "! a=1 >f rm x", "ls | a=1 b=2 >f rm x", "! ! env >f rm x", "ls && ! nice >f rm x | cat", "a=1 <<E rm x\nE", "ls | a=1 <<E >f rm x\nE", ">f <<E rm x\nE", "ls & env >&- \"rm\" x", "env {q}>f rm x",
    # Nodes of the tree that touch are one word, also behind a redirection and in the value of a variable.
    "env >\"a\"\\b rm x", ">'a'\\b rm x", "a=\"\"\\= rm x", "ls | env <<< \"a\"\\b rm x",
    # Substitutions that the parser does not read.
    "echo ${a:-#} ${PATH#<(rm x)}", "cat <<-E\n\t$(rm x) $y\n\tE", "echo ${PATH%$(rm x)}", "cat <<< `true``rm x`", "echo ${PATH/<(rm x)/b}", "echo `ls a`\n`rm x`",
    "<a b=\nrm x", "a= b=\nenv >f rm x", "x=y b= # c\nrm n",
    "n <<'E' |\nls <<'E'\nE\n`rm x`\nE", "env a-b=1 rm x", "env =1 rm x", "env = rm x", "sudo a.b=c rm x", "env =a rm x",
    "! { rm x; }", "time { rm x; }", "time -p { ls; rm x; } | cat",
    # Commands in options of one letter among others, and in those of tar without a dash.
    "tar cIf 'rm x' b.tar", "tar cfI b.tar 'rm x' a", "tar -cI'rm x' -f b.tar a", "rsync -ave'rm x' a h:b", "zip -TTrm b.zip a", "zip -qTT rm b.zip a",
    "strace -o '!rm x' ls", "strace -fo'|rm x' ls", "gcc -wrapper rm,x a.c", "x86_64-linux-gnu-g++-12 -wrapper rm,x a.c", "sudo clang -wrapper rm a.c",
    # Other names of programs.
    "gsed '1e rm x' a.txt", "sudo ssed '1e rm x' a.txt", "gxargs rm < a.txt", "zsh -c '=rm x'", "zsh -c 'ls | =env =rm x'",
    # Code in a file that a shell makes of what a command prints.
    "awk -f <(echo 'BEGIN{system(\"rm x\")}')", "perl <(printf 'system(\"rm x\")')", "python3 - < <(echo 'import os; os.system(\"rm x\")')", "node <(echo 'require(\"child_process\").execSync(\"rm x\")')",
    "time a=1 rm x", "time a+=1 b= rm x", "coproc N while rm x; do break; done",
    # The parser takes a # in a word for a comment, and a word such as while for the name of a program.
    "ls \\ #; rm x", "ls \\\t#; rm x", "[[ a ]]#; rm x", "ls\r#; rm x", "ls\u3000#; rm x", "ls a\\\n#; rm x", "! while rm x; do break; done", "! ! rm x", "time if rm x; then :; fi", "time -p for i in a; do rm x; done", "coproc until rm x; do break; done", "awk 'BEGIN{system(\"r\\\nm x\")}'", "python3 -c 'import os; os.system(\"\"\"ls # a\nrm x\"\"\")'", "sed \"1e ls $x; rm y\" a.txt", "echo ${u:=#'q r'`:`} ${PATH#<(rm x\nx=a\\ b)}",
    "hash -p /bin/rm ls; ls x", "git -c alias.x='!sh -c' x 'rm x'", "zsh -c 'noglob rm x'", "zsh -c 'repeat 2 rm x'", "perl -e 'system qq{rm x}'", "python3 -mtimeit 'import os; os.system(\"rm x\")'", "python3 -m timeit -s 'import os' 'os.system(\"rm x\")'", "man -H'rm x' ls", "npm exec --call='rm x'", "npm --editor 'rm x' config edit", "install -s --strip-program rm a.txt b",
    "pip config edit --editor='rm x'", "go vet -vettool=/bin/rm .", "cmake -E chdir . rm x", "logsave f rm x", "prove -e rm x", "debconf -o x rm x", "sotruss rm x", "dpkg-architecture -c rm x", "ag --pager='rm x' one",
    # A part of the text is only known when the command runs.
    "python3 -c \"import os; os.system('rm $(cat a.txt)')\"", "perl -e \"system('rm $(cat a.txt)')\"", "sed \"1e rm $(cat a.txt)\" a.txt", "git -c alias.x=\"!rm $x\" x", "git -c alias.x=\"!rm $(cat a.txt)\" x", "split --filter=\"rm $x\" a.txt &", "timeout 5 perl -e \"system('rm $(cat a.txt)')\"", "sudo sed \"1e rm $x\" a.txt &", "find . -exec python3 -c \"import os; os.system('rm $(cat a.txt)')\" ';'", "nice split --filter=\"rm $(cat a.txt)\" a.txt",  "tar --checkpoint=1 --checkpoint-action=\"exec=rm $(cat a.txt)\" -cf b.tar a.txt",
    # Substitutions that the parser does not read.
    "cat <<E\n`rm x`\nE", "git commit -F - <<E\na\n\nSee `rm x`.\nE", "git commit -m \"$(cat <<E\n`rm x` $y\nE\n)\"", "echo ${a:-`rm x`}", "echo \"${a=`rm x`}\"", "echo ${PATH#`rm x`}", "echo `echo \\`rm x\\``", "echo \"${a-'`rm x`'}\"", "[[ a == b<(rm x) ]]", "(( x = '`rm x`' ))", "cat <<E\n\\a # $(rm x)\nE",
    "tar --checkpoint=1 --checkpoint-action exec=rm -cf b.tar a.txt", "wget --use-askpass=rm http://127.0.0.1/", "git config core.editor 'rm x'; git commit", "git config --global core.pager rm", "git config set diff.x.textconv 'rm x'", "git config core.gitProxy 'rm x'", "git config submodule.a.update '!rm x'", "git config remote.a.uploadpack 'rm x'", "git config interactive.diffFilter 'rm x'", "git config pager.log 'rm x'", "git config sendemail.smtpServer 'rm x'", "git difftool -yx 'rm x #'",
    "git send-email --sendmail-cmd='rm x' a.patch", "git send-email --cc-cmd rm a.patch", "git send-email -to-cmd=rm a.patch", "git send-email --smtp-server=/bin/rm a.patch", "git instaweb --httpd='rm x'", "git instaweb -d 'rm x'", "git merge-index -q rm -a", "git -c core.editor=rm commit", "git -ccore.pager=rm log", "git clone --config core.sshCommand='rm x' h:b", "git clone --config=core.sshCommand=rm h:b", "git rebase --ex 'rm x' HEAD", "git fetch --upload=rm .", "git difftool --extc='rm x'", "git difftool -x rm", "git grep --open='rm x' a", "git remote-ext origin 'rm x'", "git daemon --access-hook=/bin/rm .", "git svn fetch --authors-prog='rm x'", "git web--browse -b rm x", "git clone -u rm . y", "/usr/lib/git-core/git-instaweb -d rm", "tar --to-com='rm x' -xf a.tar", "tar --use-comp=rm -cf a.tar a", "sort --compress-prog=rm a.txt", "rsync --rs='rm x' a h:b", "tar --checkpoint --checkpoint-act=exec=rm -cf b.tar a",
    "mapfile -C rm -c 1 x < a.txt", "readarray -C 'rm y' x < a.txt", "compgen -C rm x", "sftp -D 'rm x'", "sftp -oPort=1 -D rm",
    "ssh-agent rm x", "ssh-agent -a s rm x", "ssh-agent sh -c 'ssh-add; rm x'", "linux32 rm x", "caffeinate -i rm x", "arch -x86_64 rm x", "gosu bob rm x", "tini -- rm x", "cross-env A=1 B=2 rm x", "sshpass -p a ssh h rm x", "autossh -M 0 h rm x", "mpirun -n 2 rm x",
    "pyenv exec rm x", "asdf exec rm x", "nvm exec 20 rm x", "dotenv -f .env run -- rm x", "op run --env-file=e -- rm x", "doppler run -- rm x", "aws-vault exec a -- rm x", "lerna exec -- rm x", "stack exec -- rm x", "guix shell a -- rm x",
]  # fmt: skip
NO_PUSH = ["git push", "git -C . -c a=b -c a=b -c a=b -c a=b push", "git --no-pager -c a=b -c c=d --git-dir x -c e=f -c g=h push -f",
    "git -C . push", "git -c a=b push origin", "git --no-pager -C sub push", "git --git-dir=x push", "ls && git push",
    "git-push", "/usr/lib/git-core/git-push", "git -c alias.x=push x", "git config --global alias.x push; git x", "git -c alias.x='push -f' x",
    "git for-each-repo --config=a.b push", "git for-each-repo --config a.b -- push"]  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "commands"), [("rm *", NO_RM), ("git push *", NO_PUSH)], ids=["rm", "git push"]
)
async def test_a_denied_command_is_denied_wherever_it_can_be_seen(
    ws: Workspace, pattern: str, commands: list[str]
) -> None:
    rule = Rule(verb=Verb.DENY, commands=(CommandPattern(pattern),))
    box = boxed(ws, policy=RulePolicy("full", [rule]))
    found = {command: (await prepared(box, command)).kind for command in commands}
    assert {command: kind for command, kind in found.items() if kind != DENIED} == {}


AS_WRITTEN = {
    "xargs -0 *": ["git ls-files -z | xargs -0 cat", "git ls-files -z | xargs -0 -n1 wc", "find . -print0 | xargs -0 cat"],
    "xargs -r0 cat": ["git ls-files -z | xargs -r0 cat", "git ls-files -z | 'xar'gs -r\"0\" cat"], "xargs cat": ["find . -type f | xargs cat"],
    "find . -type f": ["find . -type f | xargs cat"], "bash -c *": ["bash -c 'ls sub'", "echo a; bash -c ls | cat"],
    "env *": ["env A=b ls", "env ls"], "command *": ["command ls sub"],
}  # fmt: skip


@pytest.mark.parametrize("verb", [Verb.DENY, Verb.ASK])
async def test_a_rule_sees_a_command_as_it_is_written(ws: Workspace, verb: Verb) -> None:
    """Not only as it is run in its place: `bash -c ls` as `ls`, `xargs -0 cat` as `xargs -d '\\0' cat`."""
    for pattern, commands in AS_WRITTEN.items():
        box = boxed(ws, policy=RulePolicy("full", [Rule(verb=verb, commands=(CommandPattern(pattern),))]))
        found = {command: (await prepared(box, command)).kind for command in commands}
        assert found == dict.fromkeys(commands, DENIED if verb is Verb.DENY else ASKED), pattern


LAUNCHERS = [
    "sudo", "sudo -u bob", "timeout -k 3 5s", "nice -n 5", "nohup", "setsid", "stdbuf -oL", "strace -f", "flock -n f", "xargs -n1", "valgrind", "perf stat",
    "chroot .", "bwrap --bind / / --", "pkexec", "run0 --user bob", "toybox", "wine", "bundle exec", "pnpm -r exec", "mise x node --", "uv run --with a", "cargo watch --",
    "nix develop -c", "cmake -E env", "gdb --args", "/lib64/ld-linux-x86-64.so.2", "find . -exec", "ssh -p 22 h", "faketime yesterday",
]  # fmt: skip


async def test_a_command_is_recognised_behind_a_chain_of_launchers_and_its_arguments_are_not(
    ws: Workspace,
) -> None:
    rule = Rule(verb=Verb.DENY, commands=(CommandPattern("rm *"),))
    box = boxed(ws, policy=RulePolicy("full", [rule]))
    random = Random(5)
    for _ in range(150):
        chain = " ".join(random.choices(LAUNCHERS, k=random.randint(1, 5)))
        denied = random.choice(["rm x", "/bin/rm x", "sh -c 'ls; rm x'"])
        assert (await prepared(box, f"{chain} {denied}")).kind == DENIED, (chain, denied)
        if "xargs" not in chain:  # which adds words
            assert (await prepared(box, f"{chain} git commit -m 'rm x'")).kind == RUNS, chain


PERHAPS_RM = [
    # More commands in a command than are looked at.
    "export A=1; " + "echo a; " * 150 + "x" + " | cat" * 200, "A=1 " + "nice -n 5 " * 66 + "rm x",
    "sudo -u a " * 90 + "rm x", "nice -n 5 " * 66 + "rm x", "mytool '" + "echo a; " * 301 + "rm x'", "eval '" + "echo a; " * 301 + "rm x'",
    "mytool --run='rm x'", "mytool 'rm x'", "svn commit -m 'rm old files'", "python3 a.py --title 'rm the cache'", "mytool 'see `rm x`'",
    "python3 -c 'import sys; print(\"rm x\")'", "make SHELL='rm x'", "tmux new-session -d rm x", "psql -c 'select 1 \\! rm x'", "env EDITOR='rm x' git commit", "python3 -c 'import os; f = os.system; f(\"rm\")'", "bash -c 'mytool \"rm x\"'", "sqlite3 :memory: '.shell rm x'", "psql -c '\\! rm x'", "less '+!rm x' a.txt",
    "tclsh <(echo 'exec rm x')", "sqlite3 -init <(echo '.shell rm x') a.db", "tmux ls \\; run rm", "tmux -f a ls", "screen -dmS a rm x", "screen -d -m rm", "tmux attach \\; neww rm",
    "echo '.system rm x' | sqlite3", "mysql -e 'system rm x'", "socat - EXEC:'rm x'", "crontab <<< '* * * * * rm x'", "sftp h <<< '!rm x'", "gh alias set x '!rm x'", "vim '+!rm x'",
    "ls | xargs sudo", "ls | xargs -I{} {} x", "ls | xargs -I% % x", "ls | xargs -I{} sudo {} x", "ls | xargs -I{} sh -c '{} x'", "ls | xargs sh", "ls | xargs -i {} x", "ls | sudo xargs env",
    # Variables that hold a command, or of which nobody knows what they are; words that a shell would expand.
    "GIT_SSH_COMMAND='rm x' git fetch", "EDITOR=rm crontab -e", "export GIT_PAGER='rm x'; git log", "LESSOPEN='|rm x' less a.txt", "GOFLAGS=-toolexec='rm x' go build", "make CC=rm", "export x='rm x'",
    "x=$(cat a.txt); $x y &", "export GIT_PAGER=$x; git log", "BASH_ENV=a.sh bash b.sh", "GIT_CONFIG_COUNT=1 make", "MAKEFLAGS=-n make", "NODE_OPTIONS='--import data:text/javascript,a' node b.js", "IFS=_; x=$(cat a.txt); $x", "IFS=_; x=rm_x; $x &", "f() { \"$@\"; }; f rm x",
    "touch {a,b}; r? x", "x='a[$(rm x)]'; echo $((x))", "hash -p \"$x\" ls; ls x", "enable -f ./a rm", "history -s rm x; fc -s rm", "TAR_OPTIONS='-I rm' tar cf b.tar a.txt", "ZIPOPT='-T -TTrm' zip b.zip a.txt", "PYTHONBREAKPOINT=os.system python3 a.py", "sqlite3 :memory: \".import '|rm x' t\"", "cat <<E; ls\nE\nread x < a.txt; $x & a", "curl http://127.0.0.1/ | bash -s x",
    "bash /dev/stdin < a.txt", "source <(cat a.txt)", "make -f - < a.txt", "make --eval=\"$x\"", "bash -c 'x=ls; read x < a.txt; $x y'", "trap '$x' EXIT", "eval 'read x; [ -v \"$x\" ]; $x &'", "alias q='ls'; q &",
    "bash run.sh 'rm x'", "sudo ./mytool 'rm x'", "valgrind -v ./a rm", "chroot --skip-chdir / rm x", "sed 's/a/rm x/e' a.txt", "sed 's/one/rm/ge' a.txt", "sed -n '1{s|one|rm|;e\n}' a.txt", "sed -e p -e '$e' a.txt", "sed 's%a%rm x%e' a.txt", "sed 's_a_rm x_e' a.txt", "sed '0~3e' a.txt", "sed '/a/,+2e' a.txt", "sed sxaxbxe a.txt", "sed 's[a[rm x[e' a.txt", "sed 's\\a\\b\\ g e' a.txt", "sed 's/[/]/b/e' a.txt", "sed '\\xaxe' a.txt", "sed --expression=e a.txt", "sed --expr=e a.txt", "sed -ne p -e e a.txt", "sed -f /dev/stdin a.txt < b.sed", "sed -nf- < b.sed", "sed -e 'a\\' -e x -e e a.txt",
    "sed 'y/e/x/;e' a.txt", "sed '#e\ne' a.txt", "sed 's/a/b/w f\ne' a.txt", "sed '1e $x' a.txt", "sed 's/a\\c/b/e' a.txt", "sed 'ba#x;e' a.txt", "sed -n '$!{/[[:alpha:]/]/e\n}' a.txt", "sed '1e \\x72m x' a.txt", "awk '{ system($0) }' a.txt", "awk -v c='rm x' 'BEGIN{system(c)}'", "awk '{ $0 | getline }' a.txt", "awk '{ print $0 | \"sh\" }' a.txt", "awk '{ print | $0 }' a.txt", "perl -e 'exec(@ARGV)' rm x", "ruby -e 'exec *ARGV' rm x", "php -r 'shell_exec($x);'", "perl -ne 'system $_' a.txt", "node -e 'require(\"child_process\").execSync(x)'", "sqlite3 a.db '.once |rm x'", "sqlite3 a.db '.sh rm x'", "dc <<< '!rm x'",
    "echo \"$'`read x < a.txt; $x y`'\" ${x:-`$x`}", "echo ${a:-`x=ls; read x < a.txt; $x y`}", "for x in \"a[\\$(rm x)]\"; do echo $((x)); done",
]  # fmt: skip


@pytest.mark.parametrize("verb", [Verb.DENY, Verb.ASK])
async def test_a_denied_command_in_a_text_that_may_be_data_asks(ws: Workspace, verb: Verb) -> None:
    box = boxed(ws, policy=RulePolicy("full", [Rule(verb=verb, commands=(CommandPattern("rm *"),))]))
    found = {command: (await prepared(box, command)).kind for command in PERHAPS_RM}
    assert found == dict.fromkeys(PERHAPS_RM, ASKED)


OTHERS = [
    "valgrind --version", "bwrap --version", "perf --help", "strace --version && valgrind --version",
    "ls", "echo rm x", "git commit -m 'rm x'", "grep rm a.txt", "git log | head", "git status", "awk '{print \"rm x\"}' a.txt", "printf 'rm x'",
    "git log --grep='rm x'", "git commit --message='rm x'", "git stash push -u -m 'rm x'", "git stash push -um 'rm x'", "pnpm --filter rm test",
    "git commit --amend -m 'rm x' --trailer a=b", "npm rm x", "docker rm x", "mytool rm x", "sed -i 's/rm /mv /' a.txt",
    "python3 -c 'rm = 1; print(rm)'", "python3 -c 'print({\"rm\": 1}[\"rm\"])'", "npm run x -- rm", "python3 -c 'print(\"rm x\")'", "python3 <<< 'print(\"rm x\")'", "sqlite3 a.db \"select '!rm x'\"", "psql -c \"select 'system rm x'\"", "ssh -i k h uptime", "pandoc --metadata title='rm x' a.md", "npm test -- x rm", "Rscript -e 'rm(list=ls())'", "mise rm node", "mise use node@20", "gdb --args ./a rm", "uv run pytest -k rm",
    "bundle exec rspec -e 'rm x'", "npm test -- --grep 'rm x'", "valgrind ./a rm", "perf record ./a", "direnv allow", "cargo run -- rm x", "cargo watch -s 'cargo test'", "timeout 9 git commit -m 'rm x'",
    "sudo git commit -m 'rm x'", "nohup ./server", "strace -f ls", "hyperfine 'sleep 1'", "find . -name rm", "fd rm", "rsync -av -e ssh a/ h:b/",
    "psql -c \"select 'rm x'\"", "less '+/rm x' a.txt", "tar --exclude='rm x' -cf a.tar a", "mvn exec:java -Dexec.args='rm x'",
    "docker run --rm alpine ls", "echo 'rm x' | tee a.txt", "curl -d 'rm x' http://127.0.0.1/", "gh pr create --title 'rm x'",
    "grep -rl foo . | xargs sed -i 's/foo/bar/g'", "git ls-files | xargs -n1 -P4 git add", "ls | xargs -I{} cp {} b/{}.bak", "find . -print0 | xargs -0 sudo chmod +x",
    # A variable has a value, a shell and make have a file, and a shell will expand a word.
    "PORT=3000 npm start", "PYTHONPATH=. pytest -q", "CGO_ENABLED=0 GOOS=linux go build ./...", "env A=1 python3 a.py", "env | sort", "export A=b && ./run.sh", "awk '{ system(\"ls \" $1) }' a.txt", "sed -n '/start/,/end/p;s/one/e/;s/a/b/g' a.txt", "sed -e 's|/e|/f|g' -e '/x/d' a.txt", "sed 's%/e%e%;s_a_e_g' a.txt", "sed -i 's/[^/]*$//;s|[|]|e|' a.txt", "sed -e 'a\\' -e 'e rm x' a.txt", "sed '1a\\\ne rm x' a.txt", "sed '/x/c\\e rm x' a.txt", "sed '# e rm x\np' a.txt", "sed 'y/a/e/;:e;N;be' a.txt", "sed 's/x/e/w e' a.txt", "echo 'e rm x' | sed s/a/b/ > b.txt", "sed -i -f a.sed b.txt", "sed '1e date' a.txt", "sed -i \"s/a/$x/\" a.txt", "sed -i '' -e '$ d' a.txt", "! while ls; do break; done &", "time for i in a; do ls; done", "time if ls; then wc; fi; :", "ls a# 'b'#; echo \\ #rm x",  "ls -l \\\n  -a && \\\n make \\\n  rm &", "ls & echo 'a \\\nrm x' # \\", "sed '/^e/d;$!N;s/\\n/e/;P;D' a.txt", "node -e 'console.log(/a/.exec(s), x.system)'", "perl -e 'print \"the system $x\"; system(\"ls\", $x)'", "Rscript -e 'system.time(x)'", "export PATH=\"$HOME/bin:$PATH\" && make install",
    "source .venv/bin/activate && pytest", ". a.sh", "bash -eu run.sh x", "make clean && make CC=clang install", "[ -n \"$CI\" ] && echo ci", "ls ~", "echo \"${A:-b}\" $((1 + 2))", "touch src/{a,b}.py", "nohup ./server > log.txt 2>&1 &",
    "trap 'kill $x' EXIT; ./server & x=$!", "cat > a.sh <<'E' && chmod +x a.sh\nrm x\nE", "while read -r x; do echo \"$x\"; done < a.txt", "for x in *; do wc \"$x\" & done; wait", "x=$(git rev-parse HEAD); docker build -t \"a:$x\" . &", "f() { echo \"$1\"; }; f a",
    "cat > a.md <<'E'\n`rm x` $(rm x)\nE", "export PATH=\"$HOME/bin:$PATH\"", "exec 3>&1", "NODE_OPTIONS=--max-old-space-size=4096 npm run build", "ENV=prod ./deploy.sh", "IFS=, read -r a b <<< 1,2; echo \"$b\"", "git config core.editor vim &", "git config user.name 'rm x'", "git -c user.name=rm commit -m 'rm x'", "git send-email --to='rm x' --cc 'rm x' --subject='rm x' a.patch", "git log --exclude=rm", "git checkout -b rm", "git merge -m 'rm x' rm", "git clone --config user.name=rm h:b","git config --get core.editor", "git clean -fdx", "cat > a.js <<'E' && npm test\n" + "const f = (a) => { return [a, `rm ${a}`]; };\n" * 60 + "E", "ls & cat > a.md <<E\nUse \\`rm x\\`, \\$(rm x).\nE", "ls & cat <<E\n`ls` ${a:-`ls`}\nE", "echo ${PATH%%:*}  ${a//x/y} &", "echo `basename \\`pwd\\`` &", "echo 'it`s' \"`ls`\" & # `rm x`", "[[ $a =~ ^(a|b)$ ]] && ls &",
    "pyenv versions", "op item get rm", "asdf install rm 1", "doppler run -- npm start", "aws-vault exec a -- aws s3 rm x", "stack build rm", "linux32 make", "mpirun -n 4 ./a rm", "sftp -b - h",
    # A variable or a backtick in code or in a text is no command.
    "tmux", "tmux ls", "tmux attach -t rm", "tmux new -s a", "screen -ls", "screen -d -r rm", "screen", "time { ls; } | cat", "! { ls; }", "strace -o rm ls", "tar cIf xz rm a",
    "python3 a.py <(echo 'print(\"rm x\")')", "diff <(echo 'rm x') a.txt",
    "docker run \\\n -v a:b \\\n c \\\n", "time a=1 make test &", "time a=1 ls rm &", "ls >f rm", "! a=1 2>&1 >rm ls &", "cat <<E rm\nE",
    "hash -r && ls &", "timeout 5 perl -pi -e \"s/rm/$(cat a.txt)/\" a.txt", "nice git commit -m \"rm $(cat a.txt)\"",  "TAR_OPTIONS=--no-same-owner tar xf a.tar", "python3 -m timeit \"'rm x'.split()\"", "git -c alias.x='!ls' x rm", "npm --editor vim config edit",
    "perl -pi -e \"s/rm/$(cat a.txt)/g\" a.txt", "git commit -m \"rm $(cat a.txt)\"", "sed -i \"${n}i rm x $y\" a.txt", "awk \"/rm/ {print \\$$n}\" a.txt", "python3 -c \"print('$(cat a.txt) rm x')\"",
    "awk '{ printf(\"%s\", $1) > \"out\" }' a.txt", "sed -i 's/$(CC)/gcc/' a.txt", "sed -i 's/`x`/y/' a.txt", "mytool '$a b'", "php -r 'echo \"$x\";'",
    "python3 -c 'print(\"`x`\")'", "node -e 'console.log(`a ${1}`)'", "node -e 'write(\"a\", \"$x\")'", "perl -ne 'print \"$1\" if /(.)/' a.txt",
]  # fmt: skip


async def test_a_rule_against_a_command_lets_others_be(ws: Workspace) -> None:
    rules = [Rule(verb=Verb.DENY, commands=(CommandPattern("rm *"), CommandPattern("git push *")))]
    box = boxed(ws, policy=RulePolicy("full", rules))
    found = {command: (await prepared(box, command)).kind for command in OTHERS}
    assert found == dict.fromkeys(OTHERS, RUNS)


ALLOWED = {
    "git commit -m a": RUNS, "git add a.txt && git commit -m a": RUNS, "cd sub && git commit -m a | cat": RUNS, "git add sub/*.c": RUNS,
    "git commit -m \"$(cat a.txt)\"": RUNS, "git -c a=b commit -m a": ASKED, "git commit -m a > b": ASKED, "git commit -m a && rm a.txt": ASKED,
    "git add ../x": ASKED, "GIT_DIR=x git commit -m a": ASKED, "git commit -m a; for f in $x; do git commit; done": ASKED, "./git commit": ASKED,
    "sudo git commit -m a": ASKED,
}  # fmt: skip


async def test_an_allowed_command_brings_its_operands_and_nothing_else(ws: Workspace) -> None:
    allowed = (CommandPattern("git commit *"), CommandPattern("git add *"))
    box = boxed(ws, policy=RulePolicy("supervised", [Rule(verb=Verb.ALLOW, commands=allowed)]))
    assert {command: (await prepared(box, command)).kind for command in ALLOWED} == ALLOWED


async def test_a_denied_host_is_seen_in_an_address(ws: Workspace) -> None:
    box = boxed(
        ws, policy=RulePolicy("full", [Rule(verb=Verb.DENY, hosts=("*.example.org", "evil.test:22"))])
    )
    wanted = {
        "curl https://a.example.org/x": DENIED, "git clone https://u@b.example.org:8443/r": DENIED, "git clone git@evil.test:r": DENIED,
        "curl https://example.com/": RUNS, "for i in 1 2; do curl http://a.example.org; done": DENIED,
    }  # fmt: skip
    assert {command: (await prepared(box, command)).kind for command in wanted} == wanted


CONNECTING = {
    "curl a.example.org": DENIED, "curl -s b@A.Example.org./x": DENIED, "ssh evil.test": DENIED, "curl --proxy=a.example.org example.com": ASKED,
    "curl -xa.example.org:80 example.com": ASKED, "curl -s example.com https://example.net/": RUNS, "ls a.example.org": RUNS, "git status": RUNS,
    "make": RUNS, "rm a.txt": RUNS, "git fetch": ASKED, "curl example.com 2130706433": ASKED, "curl 'a\u3002example.org' b.txt": ASKED,
    "python3 a.py": ASKED, "nc $x 80": ASKED, "for h in a; do curl $h; done": ASKED,
    # curl reads escapes and patterns in a host; what stands behind ? or # is no host, and a backslash ends one for some.
    "curl http://evil%2etest/": ASKED, "curl 'http://evi[l-l].test/'": ASKED, "curl 'http://e{v,w}il.test/'": ASKED,
    "curl 'http://evil.test#@example.com/'": DENIED, "curl 'evil.test?@example.com'": DENIED, "curl 'http://example.com\\@evil.test/'": ASKED,
    "curl http://\u24d4vil.test/": DENIED, "curl http://stra\u00dfe.net/": ASKED, "curl http://user:x%40y@example.com:80/a%20b?[1-9]": RUNS,
    # An answer may send these elsewhere.
    "curl -fsSL http://example.com/": ASKED, "curl --location http://example.com/": ASKED, "wget -q http://example.com/": ASKED,
    "git fetch https://example.com/x": ASKED, "ssh example.com": RUNS, "ping example.com": RUNS,
}  # fmt: skip


@pytest.mark.promise("policy.md", "a command that cannot be understood), a person is asked")
async def test_a_command_that_may_connect_to_a_denied_host_asks_where_it_has_a_network(ws: Workspace) -> None:
    hosts = [Rule(verb=Verb.DENY, hosts=("*.example.org", "evil.test"))]
    reach = [Rule(verb=Verb.DENY, reach=frozenset({Reach.CONNECT}))]
    box = boxed(ws, policy=RulePolicy("full", hosts))
    assert {command: (await prepared(box, command)).kind for command in CONNECTING} == CONNECTING
    listed = Level(network=Network.ALLOWLIST, hosts=("*.example.com:443",))
    asked = {"python3 a.py": RUNS, "curl a.example.org": DENIED}
    for level in (Level(), listed):
        box = boxed(ws, ExternalSandbox("a container", level), policy=RulePolicy("full", hosts))
        assert {command: (await prepared(box, command)).kind for command in asked} == asked
    for level, kind in ((Level(), RUNS), (listed, ASKED), (Level(network=Network.ON), ASKED)):
        for rules in (reach, [Rule(verb=Verb.DENY, hosts=("api.example.com",))]):
            box = boxed(ws, ExternalSandbox("a container", level), policy=RulePolicy("full", rules))
            assert (await prepared(box, "python3 a.py")).kind == kind


# Approvals.


async def test_always_remembers_the_words_of_the_command(ws: Workspace) -> None:
    asked: list[Question] = []

    def always(question: Question) -> Answer:
        asked.append(question)
        return Answer(Verdict.ALWAYS, scope=Scope.PREFIX, lasting=Lasting.RUN)

    box = boxed(ws, approve=always)
    await box.call("shell", {"command": "git commit -m a"})
    assert asked[0].prefixes == (("git", "commit"),)
    wanted = {
        "git commit -m b": RUNS, "cd sub && git commit -m c | cat": RUNS, "git commit -m 'a b' --allow-empty": RUNS,
        "git -c core.editor=x commit": ASKED, "git push": ASKED, "git commit -m a && rm a.txt": ASKED, "git commit > a.txt": ASKED,
        "git commit -m a; for f in $x; do :; done": ASKED, "LD_PRELOAD=x git commit": ASKED, "git commit -F /etc/hostname": ASKED,
    }  # fmt: skip
    assert {command: (await prepared(box, command)).kind for command in wanted} == wanted


@pytest.mark.parametrize(
    "command",
    [
        "python3 -c 'print(1)'",
        "sudo ls",
        "run0 ls",
        "toybox ls",
        "wine a.exe",
        "for f in $x; do :; done",
        "rm a.txt",
        "echo x > a.txt",
        "cat .env",
    ],
)
async def test_always_is_not_offered_by_words_that_would_mean_too_much(ws: Workspace, command: str) -> None:
    asked = await prepared(boxed(ws), command)
    assert isinstance(asked, Pending) and asked.question.prefixes == ()


@pytest.mark.promise("policy.md", "What is shown is the exact thing")
async def test_a_person_sees_the_exact_thing(ws: Workspace) -> None:
    shell = Shell(ws, sandbox=NoSandbox())
    text = shell.preview(params_of("cd sub && rm -r 'a b' | cat\nrm c")).text
    for line in (
        "1. cd sub",
        "2. rm -r 'a b'",
        "   delete sub/a b and all below it",
        "in .",
        "NOTHING limits",
    ):
        assert line in text
    hidden = shell.preview(params_of("echo 'a\u202eb' \x1b[2K\u3164", workdir="sub")).text
    assert "\\u202e" in hidden and "\\x1b" in hidden and "\\u3164" in hidden and "in sub" in hidden
    assert all(char.isprintable() or char == "\n" for char in hidden)


async def test_a_folder_that_was_replaced_is_asked_about_again(ws: Workspace) -> None:
    asked: list[str] = []
    folder = Path(ws.root.path) / "sub"

    def replaced(question: Question) -> Answer:
        asked.append(question.digest)
        if len(asked) == 1:
            folder.rename(folder.with_name("old"))
            folder.mkdir()
        return Answer(Verdict.YES)

    done = await boxed(ws, approve=replaced).call("shell", {"command": "touch new", "workdir": "sub"})
    assert not done.is_error and len(asked) == 2 and (folder / "new").exists()

    def gone(question: Question) -> Answer:
        if folder.exists():
            shutil.rmtree(folder)
        return Answer(Verdict.YES)

    done = await boxed(ws, approve=gone).call("shell", {"command": "touch new", "workdir": "sub"})
    assert done.is_error and not folder.exists()


# Running.


class Recording(NoSandbox):
    """What was launched, and at which level."""

    def __init__(self) -> None:
        super().__init__()
        self.launched: list[tuple[list[str], Level | None]] = []

    def launch(self, argv: Any, *, cwd: str, env: Any, level: Level | None = None) -> Launch:
        self.launched.append((list(argv), level))
        return super().launch(argv, cwd=cwd, env=env, level=level)


async def sh(
    ws: Workspace, sandbox: Sandbox, command: str, ctx: Context[Any] | None = None, **named: Any
) -> str:
    shell = Shell(ws, sandbox=sandbox, grace=0.3)
    return (await shell.execute(ShellParams(command=command, **named), ctx or Context())).text


@pytest.mark.promise("security.md", "it runs as the plan that was proved, not through a shell")
async def test_what_is_plain_runs_without_a_shell_and_less_may_do_less(ws: Workspace) -> None:
    recording = Recording()
    assert await sh(ws, recording, "cat a.txt | wc -l") == "3"
    only_reading = Level(Files.READ_ONLY, Network.OFF)
    assert sorted(recording.launched) == [(["cat", "a.txt"], only_reading), (["wc", "-l"], only_reading)]
    await sh(ws, recording, "echo x > new")
    assert recording.launched[-1] == ([BASH, "-c", "echo x > new"], None)


SAME_AS_BASH = [
    "ls", "ls -la | wc -l", "cat a.txt | sort -r | head -2", "cd sub && ls && cat b.c", "cd sub && cd .. && ls", "(cd sub && pwd); pwd",
    "false || echo no", "true && echo yes || echo no", "! true", "cat nothere 2>/dev/null || echo missing", "echo $(cat a.txt) \"$(cat a.txt)\"",
    "cat <<'E'\n$x\nE", "cat <<< 'a b'", "cat < a.txt | tail -1", "echo sub/*.c no/*.c", "LC_ALL=C sort -r a.txt", "grep -c o a.txt", "grep zzz a.txt",
    "echo a >&2", "ls a.txt 2>&1 >/dev/null", "test -f a.txt && echo there", "printf '%s|' a '' 'b c'", "yes | head -3", "find . -name '*.c'", "wc -l a.txt",
    "bash -c 'cat a.txt | wc -l'", "env LC_ALL=C sort a.txt", "echo 'a  b' # comment", "cat a.txt |\nwc -l", "seq 1 3; echo; seq 2",
]  # fmt: skip


def by_bash(command: str, cwd: str) -> subprocess.CompletedProcess[str]:
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    argv = [BASH, "-c", command]
    return subprocess.run(argv, cwd=cwd, stdin=nothing, stdout=pipe, stderr=subprocess.STDOUT, text=True)


@pytest.mark.skipif(not BASH, reason="needs bash")
@pytest.mark.parametrize("name", [*BACKENDS, "wanted none"])
async def test_a_plan_gives_what_bash_gives(ws: Workspace, name: str) -> None:
    sandbox = sandbox_of(name, ws)
    shell = Shell(ws, sandbox=sandbox)
    for command in SAME_AS_BASH:
        params = params_of(command)
        assert shell.precheck(params) is None and shell.doubt(params) is None, command
        bash = by_bash(command, ws.root.path)
        got, _, note = (await shell.execute(params, Context())).text.partition("\n\n[exit code ")
        assert got == (bash.stdout.rstrip() or "(no output)"), command
        assert int(note.partition(";")[0] or 0) == bash.returncode, command


@pytest.mark.parametrize("name", BACKENDS)
def test_what_only_reads_can_write_nothing(ws: Workspace, name: str) -> None:
    """Were something proved to read that writes, the sandbox would not let it."""
    reading = Level(Files.READ_ONLY, Network.OFF)
    done = run(sandbox_of(name, ws), ["touch", "new"], ws.root.path, level=reading)
    assert done.code and not (Path(ws.root.path) / "new").exists()


FILTERS = {
    "its settings": "git config filter.x.clean 'touch ran; cat'",
    "a process": "git config filter.x.process 'touch ran; false'",
    "another spelling": "printf '[core]bare=false\\n[FILTER.x]clean=touch ran;cat\\n' >> .git/config",
    "a file that is included": "printf '[filter \"x\"]\\nclean = touch ran; cat\\n' > f && git config include.path ../f",
    "included on one condition": "printf '[filter \"x\"]\\nclean = touch ran; cat\\n' > .git/f && git config includeIf.gitdir:**.path f",
    "a worktree's own": "git config extensions.worktreeConfig true && git config --worktree filter.x.clean 'touch ran; cat'",
    "a repository in it": "git init -q in && cd in && echo '* filter=x' > .gitattributes && touch a && git add -A && "
    "git -c user.name=a -c user.email=a@a commit -qm m && cd .. && git add in && "
    "git -C in config filter.x.clean 'touch ../ran; cat' && echo more > in/a",
    "an extension of lfs": "git config lfs.extension.x.clean 'touch ran'",
}


def with_filter(ws: Workspace, way: str) -> Path:
    """Makes the workspace a repository whose settings name a filter, which creates the file `ran`."""
    root = Path(ws.root.path)
    attributes = "git init -q . && echo '* filter=x' > .gitattributes && git add -A"
    made = f"{attributes} && {FILTERS[way]} && touch -d 2000-01-01 a.txt"
    subprocess.run(["bash", "-c", made], cwd=root, check=True, capture_output=True)
    (root / "ran").unlink(missing_ok=True)
    return root


@pytest.mark.promise("shell-commands.md", "Without a sandbox, such a command asks and names the filter")
@pytest.mark.parametrize("way", FILTERS)
async def test_a_filter_that_a_repository_names_is_not_run_unasked_where_nothing_confines_it(
    ws: Workspace, way: str
) -> None:
    root = with_filter(ws, way)
    asked: list[str] = []

    def approve(question: Question) -> Answer:
        asked.append(question.reason)
        return Answer(Verdict.NO)

    commands = [
        "git status",
        "git diff --stat",
        "git diff --no-index a.txt sub",
        "cd sub && git status",
        "git -C sub status",
        "timeout 5 git ls-files -m",
    ]
    for command in commands:
        await boxed(ws, approve=approve, policy="supervised").call("shell", {"command": command})
    assert len(asked) == len(commands) and all("filter" in one for one in asked), asked
    assert not (root / "ran").exists()
    assert (await prepared(boxed(ws, policy="supervised"), "git log --oneline")).kind == RUNS
    confined = boxed(ws, sandbox_of("bubblewrap", ws), policy="supervised")
    assert (await prepared(confined, "git status")).kind == RUNS  # as the project's own checks do
    assert (
        await prepared(boxed(ws, sandbox_of("bubblewrap", ws), autonomy="read_only"), "git status")
    ).kind == DENIED


@pytest.mark.parametrize("way", ["its settings", "a repository in it"])
async def test_git_would_run_that_filter(ws: Workspace, way: str) -> None:
    root = with_filter(ws, way)
    await boxed(ws, autonomy="full").call("shell", {"command": "git status"})
    assert (root / "ran").exists()


@pytest.fixture
def hostile(ws: Workspace) -> Path:
    """A repository whose own configuration would run programs."""
    root = Path(ws.root.path)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for setting in ("core.fsmonitor", "core.pager", "pager.status", "diff.external"):
        subprocess.run(["git", "-C", str(root), "config", setting, "touch ran; false"], check=True)
    return root


@pytest.mark.promise(
    "shell-commands.md",
    "git runs with its hooks, pagers, file monitors, external diffs, text converters, "
    "editors, credential helpers, transports",
)
@pytest.mark.parametrize("name", [*BACKENDS, "wanted none"])
async def test_git_runs_nothing_of_the_repository(ws: Workspace, hostile: Path, name: str) -> None:
    for command in ("git status --short", "git diff", "git log --oneline -1"):
        await sh(ws, sandbox_of(name, ws), command)
    assert "a.txt" in await sh(ws, sandbox_of(name, ws), "git status --short")
    assert not (hostile / "ran").exists()


async def test_no_link_leads_a_plan_out(ws: Workspace, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("outside\n")
    (Path(ws.root.path) / "out").symlink_to(tmp_path)
    recording = Recording()
    assert "exit code 1" in await sh(ws, recording, "cat < out/x")
    assert recording.launched == []


RUNS_FILES = ["bash run.sh", "sh -x ./run.sh", "./run.sh", "cd sub && bash ../run.sh", "bash < run.sh", "timeout 5 bash run.sh", "source run.sh",
              "python3 run.sh", "echo a; bash run.sh", "bash -c 'bash run.sh'", "sudo bash run.sh", "$SHELL ./run.sh", "env bash run.sh", "cat run.sh | bash"]  # fmt: skip


@pytest.mark.promise("shell-commands.md", "if the file is another one when the answer comes, nothing runs")
@pytest.mark.parametrize("command", RUNS_FILES)
async def test_a_yes_to_a_script_holds_for_what_was_in_it(ws: Workspace, command: str) -> None:
    script = Path(ws.root.path) / "run.sh"
    script.write_text("#!/bin/sh\necho harmless\n")
    script.chmod(0o755)
    box = boxed(ws, policy="supervised")
    pending = await prepared(box, command)
    assert isinstance(pending, Pending)
    pending = await box.preview(pending)
    if command != "cat run.sh | bash":
        assert "echo harmless" in str(pending.question.preview)
    script.write_text("#!/bin/sh\ntouch pwned\n")
    done = await box.execute(pending, Answer(Verdict.YES))
    assert done.is_error and not (Path(ws.root.path) / "pwned").exists()
    again = await box.preview(await prepared(box, "echo x > y"))  # type: ignore[arg-type]
    assert not (await box.execute(again, Answer(Verdict.YES))).is_error


@pytest.mark.promise("shell-commands.md", "if the file is another one when the answer comes, nothing runs")
async def test_a_yes_to_a_target_holds_for_its_file(ws: Workspace) -> None:
    makefile = Path(ws.root.path) / "Makefile"
    makefile.write_text("deploy:\n\t@echo harmless\n")
    box = boxed(ws, policy="supervised")
    pending = await box.preview(await prepared(box, "make deploy"))  # type: ignore[arg-type]
    makefile.write_text("deploy:\n\t@touch pwned\n")
    assert (await box.execute(pending, Answer(Verdict.YES))).is_error
    assert not (Path(ws.root.path) / "pwned").exists()


LINKED = """cat safe.txt|cat ./safe.txt|cat sub/../safe.txt|head -1 notes.txt|grep x safe.txt|wc -l s*.txt|cat sub/*.c|sort < a.txt safe.txt
cat out/x|ls out|cd out && ls|cat sub/far/x|grep -R x sub|grep -R x .|diff -r sub build|find . -name '*.txt' -exec cat {} +
find . -type f -o -name safe.txt -exec cat {} +|find sub -print0 | xargs -0 cat|timeout 5 cat safe.txt|bash -c 'cat safe.txt'
(cd sub && cat ../safe.txt)|cd sub && cat x.c|cat a.txt && cat safe.txt|echo "$(cat safe.txt)"|awk 1 safe.txt|sed -n 1p safe.txt
diff a.txt safe.txt|base64 safe.txt|cat chain.txt|cat hop/safe.txt|find out/ -name x|jq . safe.txt|od -c notes.txt""".replace(
    "\n", "|"
)
NOT_LINKED = """cat a.txt|cat inside.txt|grep -r x .|ls -la sub|readlink safe.txt|realpath out|test -L safe.txt|stat notes.txt|wc -l a*.txt
find . -type f -exec cat {} +|find . -type f -print0 | xargs -0 wc -l|find . -name '*.txt'|cat inner/b.c|grep -R x inner""".replace(
    "\n", "|"
)


@pytest.fixture
def linked(ws: Workspace, tmp_path: Path) -> Workspace:
    """A workspace with links to secrets and to the outside, and some that stay inside."""
    root = Path(ws.root.path)
    (tmp_path / "x").write_text("outside\n")
    (root / ".env").write_text("outside=1\n")
    (root / "inner").mkdir()
    (root / "inner" / "b.c").symlink_to("../sub/b.c")
    for name, target in {
        "safe.txt": ".env", "notes.txt": str(tmp_path / "x"), "out": str(tmp_path), "sub/far": "../../", "chain.txt": "safe.txt",
        "hop": ".", "inside.txt": "a.txt", "sub/x.c": "../.env",
    }.items():  # fmt: skip
        (root / name).symlink_to(target)
    return ws


@pytest.mark.promise(
    "shell-commands.md", "a link to what may hold secrets or to what lies outside the workspace asks"
)
async def test_a_command_asks_where_a_link_leads_to_what_would_ask(linked: Workspace) -> None:
    box = boxed(linked, policy="supervised")
    commands = [command.replace("\0", "|") for command in LINKED.replace(" | ", " \0 ").split("|")]
    unasked = [command for command in commands if isinstance(await prepared(box, command), Ready)]
    # A redirection follows no link, so that command fails.
    assert unasked == []
    commands = [command.replace("\0", "|") for command in NOT_LINKED.replace(" | ", " \0 ").split("|")]
    box = boxed(linked, sandbox=sandbox_of("bubblewrap", linked), policy="supervised")  # which hides .env
    asks = [command for command in commands if not isinstance(await prepared(box, command), Ready)]
    assert asks == []


@pytest.mark.promise(
    "shell-commands.md", "a link to what may hold secrets or to what lies outside the workspace asks"
)
async def test_a_question_about_a_link_says_where_it_leads(linked: Workspace) -> None:
    pending = await prepared(boxed(linked, policy="supervised"), "cat safe.txt")
    assert isinstance(pending, Pending)
    assert "safe.txt -> .env" in str(pending.question)
    refused = await boxed(linked, policy="read_only").call("shell", {"command": "cat notes.txt"})
    assert refused.is_error
    full = await boxed(linked, policy="full").call("shell", {"command": "cat safe.txt"})
    assert "outside=1" in full.text


@pytest.mark.promise("shell-commands.md", "the decision and again just before a program starts")
@pytest.mark.promise(
    "policy.md",
    "Operands of commands are looked up in the same way, and once more when a proved command starts",
)
async def test_a_link_that_appears_after_the_decision_is_not_followed(linked: Workspace) -> None:
    box = boxed(linked, policy="supervised")
    root = Path(linked.root.path)
    for command, name in (
        ("cat a.txt", "a.txt"),
        ("cat sub/*", "sub/new"),
        ("cat $(find sub -name new)", "sub/new"),
    ):
        (root / "sub" / "far").unlink(missing_ok=True)
        (root / "sub" / "x.c").unlink(missing_ok=True)
        (root / "sub" / "new").unlink(missing_ok=True)
        ready = await prepared(box, command)
        assert isinstance(ready, Ready), command
        (root / name).unlink(missing_ok=True)
        (root / name).symlink_to(root / ".env")
        assert "outside=1" not in (await box.execute(ready)).text


async def test_a_link_is_no_other_name_for_a_folder(ws: Workspace) -> None:
    (Path(ws.root.path) / "link").symlink_to("secrets")
    with pytest.raises(ToolError, match=r"link is a link to another folder\. Give secrets as workdir"):
        await sh(ws, NoSandbox(), "cat plan", workdir="link")


def as_tuple() -> str:
    """The command lines of all processes."""
    return subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout


async def nothing_left(mark: str) -> bool:
    for _ in range(200):
        if mark not in as_tuple():
            return True
        await asyncio.sleep(0.02)
    return False


SLEEPERS = ["sleep 287.31", "sleep 287.31 | cat | cat", "echo $(sleep 287.31)", "(sleep 287.31; ls) | cat", "cd sub && sleep 287.31", "yes | sleep 287.31"]  # fmt: skip


@each("number, name, command", [(n, *case) for n, case in enumerate(product([*BACKENDS, "wanted none"], SLEEPERS))], at_once=6)  # fmt: skip
async def test_a_timeout_ends_a_whole_plan(ws: Workspace, number: int, name: str, command: str) -> None:
    own = f"287.31{number:02}"  # seconds, and what the processes of this case are found by
    with pytest.raises(ToolError, match=r"longer than 1 second\b"):
        await sh(ws, sandbox_of(name, ws), f"echo begun; {command.replace('287.31', own)}", timeout=1)
    assert await nothing_left(own)


@each("number, name, moment", [(n, *case) for n, case in enumerate(product([*BACKENDS, "wanted none"], [0.0, 0.01, 0.03, 0.06, 0.3]))], at_once=3)  # fmt: skip
async def test_a_cancel_at_any_moment_leaves_nothing(
    ws: Workspace, number: int, name: str, moment: float
) -> None:
    own = f"287.32{number:02}"
    task = asyncio.create_task(sh(ws, sandbox_of(name, ws), f"sleep {own} | sleep {own} | (sleep {own}; ls)"))
    await asyncio.sleep(moment)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await nothing_left(own)


async def test_much_output_of_a_plan_keeps_its_beginning_and_its_end(ws: Workspace) -> None:
    got = await sh(ws, NoSandbox(), "seq 1 400000 | cat; cat < nothere")
    assert got.startswith("1\n2\n3\n") and "\n400000\n" in got and "bytes left out ...]" in got
    assert "exit code 1" in got and len(got) < 1_200_000


class Listener:
    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    def report(self, ctx: Context[Any], named: dict[str, Any]) -> None:
        self.told.append(named["result"])

    def remembered_approvals(self, ctx: Context[Any]) -> list[Any]:
        return []


async def test_output_of_a_plan_comes_live(ws: Workspace) -> None:
    listener = Listener()
    ctx: Context[Any] = Context(host=listener)  # type: ignore[arg-type]
    await sh(ws, NoSandbox(), "echo first; sleep 0.4; seq 1 2000", ctx)
    assert listener.told[0]["output"] == "first\n"
    assert listener.told[-1]["exit_code"] == 0 and listener.told[-1]["output"].endswith("2000\n")
    assert len(listener.told) < 40


def held() -> int:
    """How many descriptors are open."""
    return len(list(Path("/dev/fd").iterdir()))


async def held_soon(wanted: int) -> int:
    """How many are open once it is no more than wanted, or after five seconds: the launcher tells of an end late."""
    for _ in range(100):
        if held() <= wanted:
            break
        await asyncio.sleep(0.05)
    return held()


async def test_a_cancel_at_any_step_gives_descriptors_back(ws: Workspace) -> None:
    await sh(ws, NoSandbox(), "ls | cat")
    before = held()
    for steps in range(60):
        task = asyncio.create_task(sh(ws, NoSandbox(), "echo $(ls) | cat"))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    assert await held_soon(before) <= before


async def test_descriptors_are_given_back(ws: Workspace) -> None:
    await sh(ws, NoSandbox(), "ls | cat")
    before = held()
    for command in (
        "ls | cat",
        "echo $(ls)",
        "cat < nothere",
        "cd nowhere",
        "(cd sub; ls) >/dev/null",
        "cat nothere",
    ):
        await sh(ws, NoSandbox(), command)
    with pytest.raises(ToolError):
        await sh(ws, NoSandbox(), "sleep 9 | sleep 9", timeout=1)
    assert await held_soon(before) <= before


async def test_a_sandbox_that_cannot_be_made_starts_nothing(ws: Workspace) -> None:
    class Refusing(NoSandbox):
        def launch(self, *given: Any, **named: Any) -> Any:
            from toolcrib.command.sandbox import SandboxError

            raise SandboxError("bwrap is not installed")

    for command in ("ls", "ls | cat; ls"):
        with pytest.raises(ToolError, match="could not be confined: bwrap is not installed"):
            await sh(ws, Refusing(), command)


async def test_commands_of_one_turn_that_only_read_run_side_by_side(ws: Workspace) -> None:
    box = boxed(ws)
    results = await box.call_turn([ToolCall("shell", {"command": f"echo {number}"}) for number in range(6)])
    assert [result.text for result in results] == [str(number) for number in range(6)]


async def test_a_denial_in_the_middle_of_a_turn_runs_nothing(ws: Workspace) -> None:
    box = boxed(ws)
    done = await box.call("shell", {"command": "touch new"})
    assert done.code is ErrorCode.NOBODY_TO_ASK and not (Path(ws.root.path) / "new").exists()
    assert isinstance(await prepared(box, "ls"), Ready)


HELD = ExternalSandbox("a container")
CHECKS = ["pytest -q", "npm test", "make test", "cd sub && pytest | tail -3"]


@pytest.mark.parametrize(
    ("autonomy", "becomes"), [("read_only", DENIED), ("supervised", RUNS), ("full", RUNS)]
)
async def test_a_projects_checks_run_unasked_but_are_no_reading(
    ws: Workspace, autonomy: str, becomes: str
) -> None:
    """They run the project's code, which may write there: a rule about what writes means them too."""
    for command in CHECKS:
        assert (await prepared(boxed(ws, HELD, autonomy=autonomy), command)).kind == becomes
        asks = read_rules('[[rule]]\nask = true\neffect = "write"').policy(autonomy)
        asked = await prepared(boxed(ws, HELD, policy=asks), command)
        assert asked.kind == (DENIED if autonomy == "read_only" else ASKED)
        assert (await prepared(boxed(ws, HELD, policy=asks), "ls")).kind == RUNS

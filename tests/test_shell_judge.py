"""What is plain, what asks and why, what is denied; and that no text at all makes the judge stumble."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each
from tests.growth import growth
from toolcrib.access import PATHS
from toolcrib.command.explain.scripts import places_of_code
from toolcrib.command.judge import Operand, Plan, judge
from toolcrib.command.judge.accesses import accesses_of
from toolcrib.command.judge.find_commands import MAX_LENGTH, find_commands
from toolcrib.command.judge.parse import parse
from toolcrib.command.not_proved import NotProved
from toolcrib.command.plan import Command, commands
from toolcrib.command.programs import destructive, traits
from toolcrib.command.programs.options import read_arguments
from toolcrib.command.programs.table import SYNOPSES
from toolcrib.command.programs.wrappers import WRAPPERS
from toolcrib.visible import escape_invisible

PLAIN = [
    "ls", "ls -la src 2>/dev/null", "cat a.txt | sort | uniq -c | head -5", "grep -rn TODO --include=*.py src", "wc -l src/*.py",
    "rg -n 'foo|bar' src -g '*.py'", "find . -name '*.py' -not -path './x/*' | head", "find . -type f -exec grep -l foo {} +",
    "find . -name '*.c' -print0 | xargs -0 wc -l", "sed -n '1,20p' f", "sed 's/a/b/g; /x/d' f", "awk -F, '$3 > 10 {print $1}' d.csv",
    "jq -r '.a[] | .b' x.json", "git status", "git log --oneline -5 --format=%B", "git diff HEAD~1..HEAD -- src", "git show HEAD:a.txt",
    "git --no-pager log -3", "git apply --check a.patch", "git apply --stat -R < a.patch", "git branch --show-current", "git stash list", "pytest -x -q tests/test_a.py", "cd sub && make test", "npm test",
    "(cd sub; ls) | wc -l", "cd a/b && cd .. && cat x", "! grep -q foo a || echo no", "true && false || ls", "echo \"$(ls | wc -l) files\"",
    "echo $(whoami) `date`", "cat <<'EOF'\n$x `y`\nEOF", "cat <<EOF | wc -l\nno variables\nEOF\nls", "git apply --check - <<'EOF'\nx\nEOF", "cat a - \t- <<-EOF | wc -l\nx\nEOF", "cat <<< 'x; rm -rf /'", "ls # rm -rf /",
    "ls -l \\\n  -a", "echo 'rm -rf /'", "grep -rn \"rm -rf /\" .", "echo a > /dev/null 2>&1", "ls &> /dev/null", "LC_ALL=C sort < a.txt",
    "bash -lc 'git status && ls'", "sh -c 'cat a.txt | wc'", "env LC_ALL=C sort a", "timeout 30 pytest", "nice -n 5 ls", "printf '%s\\n' a b",
    "tar -tzf a.tgz", "/usr/bin/git status", "date +%F", "node --version", "git show HEAD@{1}", "echo {}", "echo $'a\\tb'", "echo ---", "echo hi!",
    "test -f package.json && npm test", "grep -rn -- --x src", "head -20 a; tail -n +3 b", "cat .env.example", "du -sh .", "diff -u a b", "cargo test",
]  # fmt: skip


@each("command", PLAIN)
def test_plain(command: str) -> None:
    found = judge(command)
    assert (found.verdict, found.reason) == ("plain", "")
    assert found.plan is not None
    assert found.proved


ASKS = {
    "touch x": "changes files", "echo x > f": "writes f", "cat ../x": "outside", "cat /etc/passwd": "outside", "cat .env": "secrets",
    "cat a/.ssh/id_rsa": "secrets", "cat *": "pattern", "cat x/*.pem": "secrets", "cat conf/.e*": "secrets", "cd ..": "outside", "cd": "outside",
    "cd a && cd ../..": "outside", "cd .git && cat config": "secrets", "cat file:///etc/passwd": "address", "echo $HOMES": "variable",
    "echo {a,{b,c}}": "brace", "ls ~": "~", "ls &": "background", "ls >| a": ">|", "if cd src; then ls; fi": "changes its folder",
    "for i in $x; do ls; done": "variable", "for i in a; do cd $i; done": "changes its folder", "f() { ls; }; f": "function", "[[ -f x && -f y || -f z ]]": "test", "cat >(ls)": "process substitution", "cat < <(ls)": "only known when it runs", "diff <(touch x) b": "touch", "pytest <(echo x)": "process substitution",
    "cat <<EOF\n$x\nEOF": "quote its delimiter", "ls 3>&1": "file descriptor", "x=1 | cat": "assignment", "x=(1 2)": "array", "FOO=1 ls": "FOO", "LD_PRELOAD=x ls": "LD_PRELOAD",
    "GIT_PAGER=x git log": "GIT_PAGER", "time -p ls": "time", "sudo ls": "runs another program", "xargs rm": "xargs", "cat a | xargs cat": "list of names",
    "find . -delete": "-delete", "find . -name .env -exec cat {} +": "secrets", "find . -exec sh -c 'cat {}' \\;": "inside an argument",
    "sed -i s/a/b/ f": "-i", "sed 's/a/b/e' f": "sed", "sed '1r /etc/passwd' f": "sed", "awk '{print > \"x\"}' f": "awk", "awk '{print /\"/ > \"f\" \"\" /\"/}'": "awk",
    "awk 'BEGIN{system(\"x\")}'": "awk", "jq env a": "jq", "jq -n '$ENV.X'": "jq", "git push": "network", "git commit -m x": "changes files",
    "git -c a=b status": "-c", "git branch new": "makes a branch", "git tag v1": "makes a branch or a tag", "git reflog expire": "reflog", "git diff --output=x": "--output",
    "git log --ext-diff": "--ext-diff", "git diff -w --no-index a b": "--no-index", "sort --outp=x a": "--outp", "sort -ox a": "-o", "tree -o x": "-o",
    "date -s 1": "-s", "date 0101": "clock", "tar xf a": "tar", "make test SHELL=./x": "make", "make evil": "make", "npm run evil": "runs other code",
    "env": "shows all variables", "git apply a.patch": "without --check",
    "git apply --check --index a.patch": "--index", "git apply --stat --apply a.patch": "--apply", "npm test -- --fix": "--fix", "env -0": "shows all variables", "python3 - <<'EOF'\nprint(1)\nEOF": "runs code", "cat -\\\n <<'EOF'\nx\nEOF": "left out", "env -u A B=c": "shows all variables", "npm test -- ../x": "outside", "npm run lint -- .env": "secrets", "pytest -p evil": "-p", "python3 x.py": "runs code", "bash x.sh": "script", "./x": "path", "/tmp/ls": "path",
    "ls $(cat f)": "only known when it runs", "cat \"$(cat f)\"": "could become an option", "$(echo ls)": "only known", "unknown x": "unknown program",
    "\u0441at a": "odd program name", "ls" + " " * 80 + "x": "padding", "ls\u00a0x": "unusual space", "ls\n\\\ntouch x": "changes files",
    "curl x": "network", "docker ps": "network", "yarn": "runs code", "rg --pre=x a": "--pre", "rg -L a": "-L", "printf -v x y": "option",
    "env -S 'ls'": "runs another program", "watch 'ls x'": "a shell would read", "command -p ls": "runs another program", "eval ls": "unknown program",
    "echo sk-" + "a1" * 12: "key or token", "git show HEAD:.env": "secrets", "timeout 5 cd x": "no program", "cat <<A <<B\nA\nB": "cannot be parsed",
    "echo a\\\nb": "line continuation", "cat `echo \"x\"`": "quotes", "echo $'\\e[2K'": "escape", "printf '%s' \"$(ls)\" > f": "writes",
}  # fmt: skip


@pytest.mark.promise("shell-commands.md", "anything else, with the reason in one line")
@each(("command", "why"), ASKS.items())
def test_asks_and_says_why_in_one_line(command: str, why: str) -> None:
    found = judge(command)
    assert found.verdict == "ask"
    assert why in found.reason
    assert "\n" not in found.reason


DESTRUCTIVE = [
    "rm -rf /", "rm -fr --no-preserve-root /", "rm -r -f /*", "rm --recursive --force /", "rm --rec /", "r\\m -rf /", "'rm' -rf \"/\"", "$'\\x72m' -rf /",
    "/bin/rm -rf //", "rm -rf /./", "rm -rf /usr/..", "rm -rf ~", "rm -rf ~/", "rm -rf $HOME/*", "rm -rf \"${HOME}\"", "rm -rf /home/someone", "rm -rf ..",
    "rm -rf /e*", "rm -rf {/etc,/usr}", "{rm,-rf,/}", "rm${IFS}-rf${IFS}/", "x=rm; $x -rf /", "X=/; rm -rf \"$X\"", "$(echo rm) -rf /", "`echo rm` -rf /",
    "sudo -n rm -rf /", "env A=1 nice -n 5 timeout 3 rm -rf /", "nohup rm -rf / &", "foo bar rm -rf /", "bash -c 'rm -rf /'", "bash -c \"sh -c 'rm -rf /'\"",
    "eval 'rm -rf /'", "eval rm -rf /", "echo 'rm -rf /' | sh", "printf 'rm -rf %s' / | sudo bash", "bash <<< 'rm -rf /'", "sh <<EOF\nrm -rf /\nEOF",
    "echo cm0gLXJmIC8K | base64 -d | sh", "echo 726d202d7266202f | xxd -r -p | sh", "trap 'rm -rf /' EXIT", "ssh h 'rm -rf /'", "if true; then rm -rf /; fi",
    "for i in 1; do rm -rf /; done", "f() { rm -rf /; }; f", "ls && (rm -rf /)", "echo $(rm -rf /)", "cat <(rm -rf /)", "python -c 'import os; os.system(\"rm -rf /\")'",
    "python3 -c \"import shutil; shutil.rmtree('/')\"", "perl -e 'system(\"rm -rf /\")'", "ruby -e 'FileUtils.rm_rf(\"/\")'", "awk 'BEGIN{system(\"rm -rf /\")}'",
    "find / -delete", "find / -exec rm -rf {} +", "ls / | xargs rm -rf /", "chmod -R 777 /", "chown -R x:y /usr", "chmod --recursive 000 /etc", "mkfs.ext4 /dev/sda1",
    "wipefs -a /dev/sda", "dd if=/dev/zero of=/dev/nvme0n1", "cat x > /dev/sda", ": > /dev/vda1", "tee /dev/sda < x", "cp x /dev/mmcblk0", "shred /dev/sdb", "mv / /dev/null",
    "mv ~ /tmp/x", "shutdown -h now", "sudo reboot", "systemctl poweroff", "init 0", "echo b > /proc/sysrq-trigger", ":(){ :|:& };:", "b(){ b|b& };b", "function b { b | b & }; b",
    "rsync -a --delete empty/ /", "cd / && rm -rf *", "cd /etc; rm -rf .", "pushd ~ && rm -rf ./*",
]  # fmt: skip


@each("command", DESTRUCTIVE)
def test_a_destructive_command_is_denied_however_it_is_written(command: str) -> None:
    found = judge(command)
    assert found.verdict == "deny"
    assert found.destroys


NOT_DESTRUCTIVE = [
    "rm -rf build", "rm -rf ./node_modules", "rm -rf /tmp/x", "rm -rf *", "rm -rf ./*", "rm -rf .git", "git commit -m 'rm -rf / is bad'", "git log --grep='rm -rf /'",
    "rm -rf \"$DIR\"", "rm -rf $DIR/*", "find . -delete", "find / -name x -delete", "chmod -R 755 .", "chown -R me build", "dd if=a of=b", "dd if=a of=/dev/null", "curl x | sh",
    "rm /", "chmod 644 /etc/hosts", "mkfs.ext4 --help", "python -c 'print(1)'", "docker run x rm -rf /tmp", "echo x > /dev/null", "mv a b",
]  # fmt: skip


@pytest.mark.parametrize("command", NOT_DESTRUCTIVE)
def test_what_only_looks_destructive_is_no_more_than_a_question(command: str) -> None:
    assert judge(command).verdict in ("ask", "plain")


@pytest.mark.promise(
    "shell-commands.md", "it would destroy the host, or holds signs that a person cannot see"
)
@pytest.mark.parametrize(
    "sign",
    ["\0", "\r", "\x1b", "\x0b", "\x7f", "\u200b", "\u202e", "\u2066", "\ufeff", "\ud800", "\U000e0041"],
)
def test_signs_that_hide_text_are_denied(sign: str) -> None:
    assert judge(f"ls{sign} x").verdict == "deny"


@pytest.mark.promise("shell-commands.md", "so that path rules bind a shell as they bind the file tools")
def test_operands_are_named_from_the_workspace_with_what_happens_to_them() -> None:
    found = judge("cd a && cp x sub/*.c ../y && rm -r z > log < in")
    assert set(found.operands) == {
        Operand("a/x", "read"), Operand("a/sub/*.c", "read", "pattern"), Operand("a/../y", "write"),
        Operand("a/z", "delete", "subtree"), Operand("a/log", "write"), Operand("a/in", "read"),
    }  # fmt: skip
    assert found.effect == "write"
    assert found.programs == ("cd", "cp", "rm")


def test_a_find_that_deletes_says_so() -> None:
    found = judge("find build src -name '*.o' -delete")
    assert (found.verdict, found.effect, found.proved) == ("ask", "write", True)
    assert {o for o in found.operands if o.access == "delete"} == {
        Operand("build", "delete", "subtree"), Operand("src", "delete", "subtree"),
    }  # fmt: skip


def test_after_a_cd_that_may_have_failed_both_folders_count() -> None:
    assert {operand.path for operand in judge("cd a; cat x").operands} == {"x", "a/x"}
    assert {operand.path for operand in judge("cd a && cat x").operands} == {"a/x"}
    assert {operand.path for operand in judge("(cd a) && cat x").operands} == {"x"}


def test_absolute_paths_of_the_workspace_are_inside() -> None:
    assert judge("cat /w/a/b", workspace="/w").verdict == "plain"
    assert judge("cat /w/a/b", workspace="/w").operands == (Operand("a/b", "read"),)
    assert judge("cat /w/../etc/x", workspace="/w").verdict == "ask"
    assert judge("cat /wx", workspace="/w").verdict == "ask"


def test_a_cd_into_the_workspace_by_its_absolute_path_is_inside() -> None:
    for command in (
        "cd /w && ls",
        "cd /w/ && ls",
        'cd "/w/src" && npm test',
        "cd a && cd /w/src && cat x",
        "git -C /w log",
    ):
        assert judge(command, workspace="/w").verdict == "plain", command
    assert judge("cd a && cd /w/src && cat x", workspace="/w").operands == (Operand("src/x", "read"),)
    for command in (
        "cd /w/../etc && ls",
        "cd /wx && ls",
        "cd / && ls",
        "cd /w/a && cat ../../x",
        "cd /w/.git && cat config",
    ):
        assert judge(command, workspace="/w").verdict == "ask", command
    assert judge("cd /w && ls").verdict == "ask"


def test_the_way_back_from_a_cd_is_inside() -> None:
    assert judge("cd a/b && cat ../x ../../y").operands == (Operand("a/x", "read"), Operand("y", "read"))
    for command in (
        "cd a && cat ../x",
        "cd a/b && ls ../..",
        "cd a && wc < ../x",
        "cd a && grep -rn x ../src",
        "cd a && find .. -name x",
        "cd a && find .. -name '*.py' -exec grep x {} +",
        "cd a && find ../src -type f | xargs wc -l",
    ):
        assert judge(command).verdict == "plain", command
    for command in (
        "cd a && cat ../../x", "cd a; cat ../x", "cd a && cat ../.env", "cd a && cat b/../x", "cd a && cat ../*.md",
        "cd a && cat ..//etc/x", "cat ../x", "cd a && cat ../a/../../x", "(cd a) && cat ../x",
        "cd a && find .. -name .env -exec cat {} +", "cd a && find ../.ssh -type f | xargs cat",
        "cd a && git ls-files .. | xargs cat", "cd a && find .. -type f | sort | xargs cat",
    ):  # fmt: skip
        assert judge(command).verdict == "ask", command


def test_another_folder_or_variables_of_the_caller_ask() -> None:
    assert judge("ls", cwd_is_workspace=False).verdict == "ask"
    assert "PYTHONPATH" in judge("ls", env={"PYTHONPATH": "x"}).reason
    assert judge("ls", env={"LC_ALL": "C"}).verdict == "plain"


@pytest.mark.promise(
    "shell-commands.md", "What names a library, an interpreter's start file, a program or a path asks."
)
@pytest.mark.parametrize("name", ["LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "ENV", "PYTHONSTARTUP", "NODE_OPTIONS", "PERL5OPT", "RUBYOPT", "GIT_SSH_COMMAND", "PATH", "IFS", "PROMPT_COMMAND", "X_PRELOAD", "EDITOR", "PAGER", "UNKNOWN"])  # fmt: skip
def test_variables_that_load_or_are_unknown_ask(name: str) -> None:
    assert judge(f"{name}=x ls").verdict == "ask"
    assert judge(f"env {name}=x ls").verdict == "ask"
    assert judge("ls", env={name: "x"}).verdict == "ask"


@each("name", SYNOPSES)
def test_every_row_of_the_tables_can_be_read(name: str) -> None:
    for option in ("--not-an-option-of-anything", "-\u00e9"):
        stage = parse(f"x {option}").steps[0].pipeline.stages[0]
        assert isinstance(stage, Command)
        if SYNOPSES[name].inert:
            continue
        with pytest.raises(NotProved):
            read_arguments(name, SYNOPSES[name], stage.words[1:])


@pytest.mark.promise("shell-commands.md", "Nothing is allowed because of the second reading")
def test_without_the_parser_everything_asks_and_destructive_commands_are_still_denied() -> None:
    program = (
        "import sys; sys.modules['tree_sitter_bash'] = None\n"
        "from toolcrib.command.judge import judge\n"
        "print([judge(c).verdict for c in ('ls', 'rm -rf /', \"bash -c 'rm -rf /'\", 'ls\\x1b')], judge('ls').reason)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("['ask', 'deny', 'deny', 'deny']")
    assert "pip install tree-sitter tree-sitter-bash" in done.stdout


SIGNS = st.sampled_from(
    [*list("ab -/.\\'\"$`|&;<>(){}[]*?!#~=\n\t0129,:@%"), "rm", "ls", "git", "<<E\n", "$(", "é", "\x00", "�"]
)


@given(st.lists(SIGNS, max_size=60).map("".join) | st.text(max_size=80))
def test_no_text_makes_it_stumble(text: str) -> None:
    found = judge(text)
    assert found.verdict in ("plain", "ask", "deny")
    assert (found.verdict == "plain") == (not found.reason)
    if found.plan is not None:
        assert Plan.from_json(json.loads(json.dumps(found.plan.to_json()))) == found.plan


@pytest.mark.promise("shell-commands.md", "shows itself (`str(plan)`) with nothing invisible in it")
@given(st.lists(SIGNS, max_size=40).map("".join) | st.sampled_from(PLAIN))
def test_what_is_shown_means_the_same_plan(text: str) -> None:
    found = judge(text)
    if found.plan is not None and not any(
        r.kind == "text" for one in commands(found.plan) for r in one.redirects
    ):
        again = judge(str(found.plan))
        assert escape_invisible(str(found.plan)) == str(found.plan)
        assert again.verdict == found.verdict
        assert again.programs == found.programs


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        "rm ",
        "a|",
        "ls;",
        "$(",
        "'",
        '"',
        "`",
        "{a,b}",
        "a'b'",
        "((",
        "<<E\n",
        "x=1 ",
        "bash -c '",
        "eval ",
        "\\\n",
        ":(){",
        "base64 ",
        "sudo ",
        "/*",
        "~",
        "echo QQQQQQQQ | ",
    ],
)
def test_cost_grows_with_the_text_and_not_faster(piece: str) -> None:
    def judging(length: int) -> object:
        text = (piece * length)[:length]
        return lambda: judge(text)

    at_most = 40  # ten times the text; a quadratic cost would be a hundred times as much
    assert growth(judging, 900, 9_000, at_most, 0.002) < at_most  # type: ignore[arg-type]


def test_a_program_is_listed_once() -> None:
    """Of what it runs and what may be remembered, among wrappers, and among destructive commands."""
    listed = [name for names, _ in traits.ROWS for name in names.split()] + [*WRAPPERS]
    assert sorted(listed) == sorted(set(listed))
    checked = [name for names, _ in destructive.ROWS for name in names.split()]
    assert sorted(checked) == sorted(set(checked))


# Each opens or writes `given.txt` by an option, or by an argument that is not called a file.
FILES_BY_OPTIONS = """iconv -f ./given.txt a|iconv --from-code=./given.txt a|iconv -t ./given.txt a|sort --files0-from=given.txt|sort -o given.txt a
sort -ogiven.txt a|sort --random-source=given.txt a|sort --compress-program=./given.txt a|grep -f given.txt a|grep -fgiven.txt a|grep -nf given.txt a
grep --file=given.txt a|grep --exclude-from=given.txt x a|wc --files0-from=given.txt|du --files0-from=given.txt|du -X given.txt|tar -tf a -T given.txt
tar -tf given.txt|tar tf given.txt|tar -tf a -X given.txt|tar --list --file=given.txt|date -f given.txt|date -r given.txt|date -ufgiven.txt|date --file=given.txt
rsync --files-from=given.txt a b|rsync --exclude-from=given.txt a b|rg -f given.txt a|rg --ignore-file given.txt x|rg --pre ./given.txt x
jq --slurpfile a given.txt . b|jq --rawfile a given.txt . b|jq -f given.txt b|jq --from-file given.txt b|awk -f given.txt a|sed -f given.txt a
sed -n 'w given.txt' a|sed 'r given.txt' a|git log -L 1,2:given.txt|git commit -F given.txt|git grep -f given.txt|git diff -O given.txt
git blame --contents given.txt a|git diff --output=given.txt|git log --output given.txt|strings @given.txt|file -f given.txt|file -m given.txt a
find . -newer given.txt|find . -samefile given.txt|find . -fprint given.txt|find -files0-from given.txt|xargs -a given.txt cat|touch -r given.txt a
cp -t given.txt a|cp --target-directory=given.txt a|dd if=given.txt|dd of=given.txt|curl -d @given.txt http://x|curl --data=@given.txt http://x
curl -o given.txt http://x|curl -K given.txt http://x|curl -T given.txt http://x|wget -O given.txt http://x|wget --post-file=given.txt http://x
wget -i given.txt|pip install -r given.txt|pip install -c given.txt a|pytest @given.txt|pytest -c given.txt|ruff check @given.txt|mypy @given.txt
split a given.txt|split given.txt|uniq a given.txt|xxd a given.txt|tee given.txt|time -o given.txt ls|base64 given.txt|patch -i given.txt
shuf -o given.txt a|shuf --random-source=given.txt a|tree -o given.txt|tree --fromfile given.txt|realpath --relative-to=given.txt a
[ a -nt given.txt ]|test -f given.txt|diff --from-file=given.txt a|md5sum -c given.txt|zip -@ given.txt|ls --color=auto given.txt
hexdump -f given.txt a|less -o given.txt a|bat --config-file=given.txt|make -f given.txt|make -fgiven.txt test|go test -o given.txt|cargo test --config given.txt""".replace(
    "\n", "|"
).split("|")


def test_rules_see_every_file_that_an_option_opens() -> None:
    unseen = []
    for text in FILES_BY_OPTIONS:
        found = judge(text)
        reached = accesses_of(text, found, ".", unasked=True)
        if not any(
            "given.txt" in f"{access.target} {access.pattern}" for access in reached if access.reach in PATHS
        ):
            unseen.append(text)
        elif found.proved and not any("given.txt" in operand.path for operand in found.operands):
            unseen.append(f"{text} (no operand)")
    assert unseen == []


def test_a_file_of_file_names_may_name_any_file() -> None:
    for text in (
        "wc --files0-from=list",
        "tar -cf a.tar -T list",
        "rsync --files-from list a b",
        "git add --pathspec-from-file=list",
    ):
        reached = accesses_of(text, judge(text), ".", unasked=True)
        assert any(
            access.reach == "read" and access.target == "/" and access.subtree for access in reached
        ), text


def test_what_changes_a_file_that_only_a_listing_names_may_change_any() -> None:
    for text in ('rm "$(find src -name x)"', 'touch "$(ls src)"', 'mv "$(ls src)" b'):
        reached = accesses_of(text, judge(text), ".", unasked=True)
        assert any(
            access.reach == "write" and access.target == "/" and access.subtree for access in reached
        ), text


def test_names_that_a_shell_would_hand_to_xargs_may_be_any() -> None:
    """`sort` gets `-o` and a file from names that somebody chose, where a shell runs what was only asked about."""
    for text in ("ls | xargs sort; touch x", "git ls-files | xargs -n1 cat && touch x"):
        reached = accesses_of(text, judge(text), ".", unasked=True)
        assert any(
            access.reach == "write" and access.target == "/" and access.subtree for access in reached
        ), text


def test_what_is_moved_away_counts_as_deleted() -> None:
    for text in ("mv a b", "git mv a b", "git mv -f a b"):
        assert Operand("a", "delete") in judge(text).operands, text


def test_a_character_set_that_is_a_path_is_looked_at_like_one() -> None:
    assert judge("iconv -f latin1 -t UTF-8//TRANSLIT a.txt").verdict == "plain"
    assert "outside" in judge("iconv -f /etc/passwd a.txt").reason
    assert "secrets" in judge("iconv -f ./.env a.txt").reason
    assert "secrets" in judge("iconv -f .ssh//config a.txt").reason


# A runner starts the check of the project itself; whatever else it would start asks.
RUN_BY_A_RUNNER = """uv run pytest -q|uv run --frozen --package app pytest|uv run mypy .|poetry run pytest -x|npx tsc --noEmit|npx --no-install jest --ci
npx vitest run|pnpm exec eslint src|pnpm -r test|npm test --workspaces|.venv/bin/pytest|app/.venv/bin/python -m pytest -q|./node_modules/.bin/eslint src
npm test -- src/a.test.ts|npm test -- src/*.test.ts|npm test -- --testPathPattern=src/a|npx jest --testPathPattern src/a|npm run test:unit -- --watch=false|yarn test src/a|pnpm test -- -t 'adds two'|npm test -- --coverage --reporter=dot|bun test src
pylint -E --disable=C src|bandit -qr src -x tests|python3 -m ruff check .|python3 -m ruff format --check .|python -m black --check src|uv run pylint -j 4 src|.venv/bin/python -m flake8
./gradlew test|./gradlew :app:check --offline|./mvnw -q test|CI=1 uv run pytest|time uv run pytest -q|cd app && npx jest | tail -5|timeout 60 ./gradlew test"""
NO_CHECK = """uv run python x.py|uv run --with x pytest|uv run ls|uv run|uv sync|npx tsc|npx -y jest|npx x|npx|npx --package x jest|poetry run rm a|poetry run bash
pnpm exec sh -c x|.venv/bin/python x.py|../.venv/bin/pytest|/tmp/.venv/bin/pytest|x/../.venv/bin/pytest|.venv/bin/../../x/pytest|./gradlew publish|./gradlew
./gradlew -Dx=y test|./gradlew -p ../x test|./mvnw deploy|./mvnw -Dexec.args=x test|uv run $x|npx $(cat a)|.venv/bin/sh|node_modules/.bin/x|hatch run deploy
uv run --project .. pytest|npx jest --config /tmp/x.js|uv run pytest ../other|vitest|npx vitest
npm test -- --testPathPattern=../a|npm test -- $(cat a)|npm test -- src/$(cat a)*|npm test -- --grep=/etc|npm test -- --coverage=.env|npm test -- -u|npm run lint -- --fix|npm test -- --config /tmp/x.js|npm test -- --reporter=/tmp/x.js|npm test -- --watch|npm test -- ../a|npm test --watch=false
pylint --load-plugins=x a|pylint -f json:../out a|pylint --output-format=text:a.txt a|pylint --init-hook=x a|bandit -r a -o b|bandit -c x a|python -m black src
./gradlew properties|uv run npx jest|npx uv run pytest|npx timeout 5 jest|uv run timeout 5 npx jest"""


@each(
    "command", [one.strip() for one in RUN_BY_A_RUNNER.replace(" | ", " \0 ").replace("\n", "|").split("|")]
)
def test_a_runner_of_a_check_is_that_check(command: str) -> None:
    found = judge(command.replace("\0", "|"))
    assert (found.verdict, found.effect) == ("plain", "exec"), found.reason


@each("command", [one.strip() for one in NO_CHECK.replace("\n", "|").split("|")])
def test_a_runner_of_anything_else_asks(command: str) -> None:
    assert judge(command).verdict == "ask"


@each(
    "command",
    [
        "cat /etc/os-release",
        "grep -c processor /proc/cpuinfo",
        "git config user.name",
        "git config --get branch.main.merge",
    ],
)
def test_facts_and_settings_without_credentials_are_read_unasked(command: str) -> None:
    assert judge(command).only_reads


@each(
    "command",
    [
        "rm /etc/os-release",
        "cp a /etc/issue",
        "cat /etc/passwd",
        "cat /etc/os-release/../shadow",
        "cat /proc/self/environ",
        "git config user.name x",
        "git config remote.origin.url",
        "git config --get-all http.extraheader",
        "git config --unset user.name",
        "git config core.editor",
    ],
)
def test_other_files_of_the_system_and_other_settings_ask(command: str) -> None:
    assert judge(command).verdict == "ask"


@pytest.mark.promise("shell-commands.md", "so that no name becomes several words")
@pytest.mark.parametrize(
    ("written", "run"),
    [
        ("find . -name '*.txt' | xargs wc", "find . -name '*.txt' -print0 | xargs -0 wc"),
        ("find src a -print 2>/dev/null | xargs -r cat", "find src a -print0 2>/dev/null | xargs -0 -r cat"),
        (
            "find . -name a.c -o -name b.c | xargs cat | sort",
            "find . '(' -name a.c -o -name b.c ')' -print0 | xargs -0 cat | sort",
        ),
        ("(find . -type f | xargs wc)", "(find . -type f -print0 | xargs -0 wc)"),
    ],
)
def test_names_between_find_and_xargs_are_kept_whole(written: str, run: str) -> None:
    found = judge(written)
    assert found.verdict == "plain" and found.plan == judge(run).plan


def test_what_a_shell_will_run_is_judged_as_it_is_written() -> None:
    """A person's yes and a rule let a shell run the text, which has other words than the plan."""
    for command in ("find . | xargs rm", "for f in *.c; do rm $f; done", "rm {a,b}"):
        assert judge(command).verdict == "ask"
        assert not judge(command).proved
    assert judge("cat {a,b}.txt", run_by_us=False).verdict == "ask"
    assert judge("cat {a,b}.txt").verdict == "plain"


@each(
    "piece",
    ["find . -exec env ", "for i in rm ", "env find . -exec ", "sudo rm /a/{} ", "sh -c 'rm x' "],
)
def test_what_long_commands_cost_grows_with_their_length(piece: str) -> None:
    def judging(size: int) -> Callable[[], object]:
        text = "".join(piece.replace("{}", str(at)) for at in range(size // len(piece)))
        return lambda: judge(text)

    assert growth(judging, 10_000, 80_000, 20) < 20


@each(
    ("first", "piece"),
    [
        ("find . ", "-exec echo a ';' "),
        ("find . ", "-exec cat {} + "),
        ("find a ", "a "),
        ("grep x ", "a/b "),
    ],
)
def test_what_a_command_that_can_be_parsed_costs_grows_with_its_length(first: str, piece: str) -> None:
    def judging(size: int) -> Callable[[], object]:
        text = first + piece * (size // len(piece))
        return lambda: judge(text)

    assert growth(judging, 500, 3_500, 20) < 20


@each(("piece", "last"), [("-e 's/[/' ", "a.txt"), ("wf a; sed ", "&")])
def test_what_the_accesses_and_files_of_a_command_cost_grows_with_its_length(piece: str, last: str) -> None:
    def reading(size: int) -> Callable[[], object]:
        text = "sed " + piece * (size // len(piece)) + last
        judgement = judge(text)
        return lambda: (accesses_of(text, judgement, ".", unasked=False), places_of_code(text, "."))

    assert growth(reading, 400, 4_000, 25) < 25


def test_variables_that_double_each_other_fill_no_memory() -> None:
    doubling = "a0=aaaaaaaa; " + "".join(f"a{at}=$a{at - 1}$a{at - 1}; " for at in range(1, 18))
    assert judge(f"{doubling} echo $a17").reason == "a variable with a long value"
    for last in ("$a17 x", "echo $a17 $a16 $a17"):
        (found,) = find_commands(doubling + last)
        assert sum(map(len, found.argv)) <= MAX_LENGTH

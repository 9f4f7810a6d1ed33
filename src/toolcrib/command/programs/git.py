"""Sub-commands of git: those that only look, and those that change the repository, with what they change."""

from __future__ import annotations

import re

from toolcrib.command.not_proved import NotProved
from toolcrib.command.plan import Word
from toolcrib.command.programs.options import Arguments, Synopsis

_LISTING = {
    "-l", "--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at", "-n", "--show-current",
}  # fmt: skip
_REFLOG_VERBS = {"expire", "delete", "drop", "exists", "write", "list", "show"}


def _lists(found: Arguments) -> None:
    """Accepts a name after branch or tag only with an option that lists; without one it would be created."""
    if found.of("name") and not found.options & _LISTING:
        raise NotProved("git: makes a branch or a tag")


def _line_ranges(found: Arguments) -> None:
    """`-L 1,5:FILE` and `-L :name:FILE` name a file."""
    for option, word in found.values:
        if option == "-L":
            if word.literal is None:
                raise NotProved("git log: a range of lines that is only known when it runs")
            found.operands.append((Word((word.literal.rpartition(":")[2],)), "read"))


def _log(found: Arguments) -> None:
    _line_ranges(found)
    _no_merging(found)


def _no_merging(found: Arguments) -> None:
    """To show how a merge was made, git would make it again, with the programs that settings name for that."""
    if any(word.literal not in _MERGES for option, word in found.values if option == "--diff-merges"):
        raise NotProved("git: a way to show merges that is not on its list")


def _compared_files(found: Arguments) -> None:
    """`git apply --check` reads whatever files a patch names, so it counts as reading the folder."""
    if "--check" in found.options:
        found.operands.append((Word((".",)), "read"))


def _no_verb(found: Arguments) -> None:
    if set(found.of("ref")[:1]) & _REFLOG_VERBS:
        raise NotProved("git reflog: a sub-command that is not on its list")


def _identity(found: Arguments) -> None:
    if not found.of("data") or not found.of("data")[0].endswith("_IDENT"):
        raise NotProved("git var: a variable that is not on its list")


def _setting(found: Arguments) -> None:
    """Accepts settings that hold no credential, and that a plan does not set to something else."""
    if not found.of("data") or not _SETTINGS.fullmatch(found.of("data")[0]):
        raise NotProved("git config: a setting that is not on its list")


_SETTINGS = re.compile(
    r"user\.(?:name|email)|init\.defaultbranch|branch\.[\w./-]+\.(?:remote|merge|rebase)|pull\.(?:rebase|ff)|push\.default"
    r"|core\.(?:autocrlf|eol|bare|filemode|ignorecase|excludesfile|worktree|symlinks|repositoryformatversion|longpaths|quotepath)"
    r"|merge\.conflictstyle|diff\.algorithm|commit\.gpgsign|tag\.gpgsign|fetch\.prune|rerere\.enabled",
    re.IGNORECASE,
)
_MERGES = {
    "off", "none", "on", "m", "first-parent", "1", "separate", "combined", "c", "dense-combined", "cc", "dd",
}  # fmt: skip
_LIMIT = (
    "--simplify-by-decoration --exclude-first-parent-only --max-age= --min-age= --walk-reflogs -g --grep-reflog= --show-linear-break?"
    " --sparse --dense --show-pulls --ancestry-path? --alternate-refs --single-worktree --ignore-missing --basic-regexp --extended-regexp"
    " --fixed-strings --perl-regexp --remove-empty --no-min-parents --no-max-parents -r"
    " -n= -# --max-count= --skip= --since= --after= --until= --before= --author= --committer= --grep= --all-match"
    " --invert-grep --regexp-ignore-case --merges --no-merges --first-parent --min-parents= --max-parents= --all"
    " --branches? --tags? --remotes? --glob= --exclude= --reverse --topo-order --date-order --author-date-order"
    " --left-right --left-only --right-only --cherry-pick --cherry-mark --cherry --boundary --ancestry-path"
    " --simplify-merges --full-history --not -i -E -F -P"
)
_DIFF = (
    "-I= --ignore-matching-lines= --anchored= --indent-heuristic --no-indent-heuristic --color-moved-ws= --no-color-moved --no-color-moved-ws"
    " --stat-graph-width= --stat-name-width= --cumulative --dirstat-by-file? --break-rewrites? --find-copies-harder --find-object="
    " --ita-invisible-in-index --line-prefix= --default-prefix --no-relative --skip-to= --rotate-to= --rename-empty --no-rename-empty"
    " --combined-all-paths --output-indicator-new= --output-indicator-old= --no-patch"
    " -p -u -s -U= -b -w -a -R -W -z -M? -C? -B? -D -S= -G= -l= --patch --no-patch --unified= --raw --stat? --numstat"
    " --shortstat --dirstat? --summary --compact-summary --name-only --name-status --patch-with-stat --minimal"
    " --patience --histogram --diff-algorithm= --color? --no-color --color-words? --word-diff? --word-diff-regex="
    " --color-moved? --no-renames --find-renames? --find-copies? --diff-filter= --pickaxe-regex --pickaxe-all"
    " --relative? --text --ignore-space-at-eol --ignore-space-change --ignore-all-space --ignore-blank-lines"
    " --ignore-cr-at-eol --inter-hunk-context= --function-context --full-index --binary --abbrev? --no-abbrev"
    " --exit-code --quiet --check --no-ext-diff --no-textconv --src-prefix= --dst-prefix= --no-prefix"
    " --ignore-submodules? --stat-width= --stat-count= --irreversible-delete --ws-error-highlight="
)
_SHOW = (
    "--oneline --graph --no-graph --decorate? --no-decorate --pretty? --format= --abbrev-commit --no-abbrev-commit"
    " --date= --relative-date --parents --children --full-diff --follow --notes? --no-notes --source --encoding="
    " --log-size --show-pulls --no-mailmap --use-mailmap --decorate-refs= --decorate-refs-exclude= -m -c"
    " --diff-merges= --no-diff-merges --cc --dd --first-parent --expand-tabs? --no-expand-tabs --clear-decorations"
)
_LINES = "--oneline --no-decorate --decorate? --pretty? --format= --abbrev-commit --date= --relative-date"
_LIST = "--contains? --no-contains? --merged? --no-merged? --points-at= --sort= --format= --color? --no-color --column?"

_LOOKING: dict[str, Synopsis] = {
    "git": Synopsis("--version --help -v -h --exec-path --html-path --man-path --info-path", ""),
    "git --version": Synopsis("", ""),
    # With -v it shows changes, and runs the text converters that settings name.
    "git status": Synopsis(
        "-s -b -z -u? --short --branch --porcelain? --long --show-stash --ahead-behind --no-ahead-behind"
        " --untracked-files? --ignored? --column? --no-column --renames --no-renames --find-renames?"
        " --ignore-submodules?"
    ),
    "git log": Synopsis(f"{_LIMIT} {_DIFF} {_SHOW} -L=", "ref*", check=_log, below="always"),
    "git show": Synopsis(f"{_LIMIT} {_DIFF} {_SHOW}", "ref*", below="always", check=_no_merging),
    "git diff": Synopsis(f"{_DIFF} --cached --staged --merge-base --base --ours --theirs -0 -1 -2 -3", "ref*", below="always"),
    "git diff --no-index": Synopsis(_DIFF, "ref ref", below="always"),
    "git diff-tree": Synopsis(f"{_DIFF} -r -t --root --stdin -m -c --cc --no-commit-id --pretty? --format=", "ref*"),
    "git diff-index": Synopsis(f"{_DIFF} --cached -m", "ref*"),
    "git diff-files": Synopsis(_DIFF, "ref*"),
    "git shortlog": Synopsis("-s -n -e -c --summary --numbered --email --no-merges --since= --until= --all --group="
                         " --format=", "ref*"),
    **dict.fromkeys(("git blame", "git annotate"), Synopsis("--score-debug --minimal --ignore-rev= -h --line-porcelain -b -l -t -s -f -n -p -e -w -M? -C? -L= --root --show-stats --porcelain --line-porcelain"
                      " --incremental --date= --since= --show-name --show-number --show-email --abbrev? --reverse"
                      " --first-parent --color-lines --color-by-age", "ref*")),
    "git grep": Synopsis("-a -I -i -w -v -h -H -E -G -P -F -n -l -L -z -o -c -p -W -q -r -e= -f=< -A= -B= -C= -m= -#"
                     " --cached --untracked --no-index --and --or --not --ignore-case --word-regexp --line-number"
                     " --invert-match --full-name --extended-regexp --basic-regexp --perl-regexp --fixed-strings"
                     " --files-with-matches --name-only --files-without-match --null --only-matching --count"
                     " --all-match --quiet --max-depth= --max-count= --color? --no-color --column --break"
                     " --heading --show-function --function-context --exclude-standard --threads="
                     " --after-context= --before-context= --context= --recursive", "data ref*", instead="-e -f", below="always", here=True),
    "git ls-files": Synopsis("-c -d -m -o -i -s -u -k -t -v -z -x= --cached --deleted --modified --others --ignored"
                         " --stage --unmerged --killed --exclude= --exclude-standard --error-unmatch --full-name"
                         " --abbrev? --directory --eol --format= --deduplicate", contents=False, below="always", here=True),
    "git ls-tree": Synopsis("-d -r -t -l -z --long --name-only --name-status --full-name --full-tree --abbrev?"
                        " --format= --object-only", "ref*"),
    "git branch": Synopsis(f"-a -r -v -vv -l -i --all --remotes --list --show-current --verbose --abbrev? {_LIST}",
                       "name*", check=_lists),
    "git tag": Synopsis(f"-l -n? -i --list --ignore-case {_LIST}", "name*", check=_lists),
    "git remote": Synopsis("-v --verbose", ""),
    "git remote get-url": Synopsis("--push --all", "data"),
    "git stash list": Synopsis("--oneline -n= -# --stat -p --format= --date=", ""),
    "git stash show": Synopsis(f"{_DIFF} --include-untracked", "ref", below="always"),
    "git reflog": Synopsis(f"{_LIMIT} {_LINES}", "ref*", check=_no_verb),
    "git reflog show": Synopsis(f"{_LIMIT} {_LINES}", "ref*"),
    "git rev-parse": Synopsis("-q --verify --quiet --short? --abbrev-ref? --symbolic --symbolic-full-name --all"
                          " --branches? --tags? --remotes? --show-toplevel --show-prefix --show-cdup --git-dir"
                          " --git-common-dir --is-inside-work-tree --is-inside-git-dir --is-bare-repository"
                          " --show-superproject-working-tree --absolute-git-dir --not --revs-only --no-revs"
                          " --is-shallow-repository", "ref*"),
    "git rev-list": Synopsis(f"{_LIMIT} --count --objects --parents --pretty? --format= --oneline --abbrev-commit"
                         f" --no-commit-header --timestamp", "ref*"),
    "git merge-base": Synopsis("-a --all --is-ancestor --fork-point --octopus --independent", "ref*"),
    "git name-rev": Synopsis("--no-undefined --undefined --annotate-stdin --stdin --exclude= --name-only --tags --all --always --refs=", "ref*"),
    "git describe": Synopsis("--all --tags --contains --abbrev? --candidates= --exact-match --long --match="
                         " --exclude= --always --first-parent", "ref*"),
    "git cat-file": Synopsis("--batch-check? --batch-all-objects --unordered --buffer --allow-unknown-type -t -s -e -p", "ref*"),
    "git for-each-ref": Synopsis(f"--count= {_LIST}", "data*"),
    "git show-ref": Synopsis("-d -s --dereference --head --heads --tags --verify --hash? --abbrev? --quiet --branches", "data*"),
    "git show-branch": Synopsis("-a -r --all --remotes --current --list --topics --no-color --color? --sha1-name --no-name --topo-order"
                            " --date-order --sparse --merge-base --independent --more=", "ref*"),
    "git cherry": Synopsis("-v --verbose --abbrev?", "ref*"),
    "git count-objects": Synopsis("-v -H --verbose --human-readable", ""),
    "git check-ignore": Synopsis("-q -v -n -z --quiet --verbose --non-matching --no-index", contents=False),
    "git check-attr": Synopsis("-a -z --all --cached", "data*"),
    "git worktree list": Synopsis("-v -z --verbose --porcelain", ""),
    **dict.fromkeys(("git config", "git config --get", "git config get"), Synopsis(
        "-z --null --local --global --system --show-origin --show-scope --type= --get --get-all --all --bool --default=",
        "data", check=_setting)),
    "git config --list": Synopsis("--local --show-origin --show-scope --name-only -z", "", plain=False),
    "git version": Synopsis("--build-options", ""),
    "git var": Synopsis("", "data", check=_identity),
    "git check-ref-format": Synopsis("--branch --normalize --print --allow-onelevel --refspec-pattern", "data"),
    "git check-mailmap": Synopsis("--stdin", "data*"),
    "git fsck": Synopsis("--tags --root --cache --reflogs --no-reflogs --full --no-full --strict --verbose --dangling --no-dangling"
                     " --unreachable --connectivity-only --progress --no-progress --name-objects", "data*"),
    "git notes": Synopsis("", ""),
    "git notes list": Synopsis("", "data"),
    "git bisect log": Synopsis("", ""),
    "git bisect terms": Synopsis("--term-good --term-bad --term-old --term-new", ""),
    "git apply": Synopsis("-p= -R -v -q -z --check --stat --numstat --summary --reverse --verbose --quiet --directory= --unidiff-zero --recount"
                      " --ignore-whitespace --ignore-space-change --whitespace= --include= --exclude=",
                      needs="--check --stat --numstat --summary", check=_compared_files, below="always"),
    "git archive": Synopsis("-l --list", "", needs="-l --list"),
    "git prune": Synopsis("-n -v --dry-run --verbose --progress --no-progress --expire=", "", needs="-n --dry-run"),
    "git worktree prune": Synopsis("-n -v --dry-run --verbose --expire=", "", needs="-n --dry-run"),
    "git stripspace": Synopsis("-s -c --strip-comments --comment-lines", ""),
    "git column": Synopsis("--mode= --width= --indent= --padding= --nl=", ""),
    "git patch-id": Synopsis("--stable --unstable --verbatim", ""),
    "git get-tar-commit-id": Synopsis("", ""),
    "git show-index": Synopsis("--object-format=", ""),
    "git verify-pack": Synopsis("-v -s --verbose --stat-only"),
    "git merge-file": Synopsis("-p -q -L= --stdout --quiet --diff3 --zdiff3 --ours --theirs --union --marker-size=", "read read read",
                           needs="-p --stdout"),
    "git symbolic-ref": Synopsis("-q --quiet --short --recurse --no-recurse", "data"),
    "git remote show": Synopsis("-n", "data*", needs="-n"),
    "git difftool": Synopsis("--tool-help", "", needs="--tool-help"),
    "git mergetool": Synopsis("--tool-help", "", needs="--tool-help"),
    "git sparse-checkout list": Synopsis("", ""),
    "git bundle list-heads": Synopsis("", "read data*"),
    "git bundle verify": Synopsis("-q --quiet", "read"),
    "git hash-object": Synopsis("-t= --stdin --literally --no-filters --path=", needs="--no-filters --stdin"),
    "git help": Synopsis("-a -g", "data", plain=False, reading=Synopsis(
        "-a -g -c --all --guides --config --verbose --no-verbose --no-external-commands --no-aliases", "")),
    "git replace": Synopsis("-l --list --format=", "data", needs="-l --list"),
}  # fmt: skip

_CHANGING: dict[str, Synopsis] = {
    "git add": Synopsis("-A -u -v -n -f -N --all --update --verbose --dry-run --force --intent-to-add --refresh"
                    " --ignore-errors --no-all", "read*", "write", contents=True),
    "git commit": Synopsis("-m= -a -q -v -s -n --message= --all --quiet --verbose --signoff --amend --no-edit"
                       " --allow-empty --no-verify --author= --date= --dry-run --no-gpg-sign -F=< --file=<"
                       " --fixup= --squash= --reset-author --allow-empty-message", "read*", "write"),
    "git restore": Synopsis("-s= -S -W -q --source= --staged --worktree --quiet", "write*", "write"),
    "git checkout": Synopsis("-b= -B= -q -f --quiet --force --track --detach --no-track --ours --theirs --orphan=",
                         "ref*", "write"),
    "git switch": Synopsis("-c= -C= -q -d -f --quiet --detach --create= --track --no-track --force --discard-changes",
                       "ref*", "write"),
    "git reset": Synopsis("-q --soft --mixed --hard --merge --keep --quiet", "ref*", "write"),
    "git rm": Synopsis("-r -f -q -n --cached --force --dry-run --quiet --ignore-unmatch", "delete*", "write", below="recursive"),
    "git mv": Synopsis("-f -k -v -n", "delete* write", "write"),
    "git stash": Synopsis("-q -u -k -a --quiet --include-untracked --keep-index --all", "", "write"),
    "git stash push": Synopsis("-m= -q -u -k -a -S --message= --include-untracked --keep-index --all --staged",
                           "read*", "write"),
    "git stash pop": Synopsis("-q --index --quiet", "ref", "write"),
    "git stash apply": Synopsis("-q --index --quiet", "ref", "write"),
    "git stash drop": Synopsis("-q --quiet", "ref", "write"),
    "git merge": Synopsis("-m= -q -n --no-ff --ff-only --ff --squash --abort --no-commit --no-edit --quiet --stat",
                      "ref*", "write"),
    "git rebase": Synopsis("-q --onto= --abort --continue --skip --quiet --autostash", "ref*", "write"),
    "git cherry-pick": Synopsis("-n -x -s -m= --abort --continue --skip --no-commit", "ref*", "write"),
    "git revert": Synopsis("-n -s -m= --no-edit --no-commit --abort --continue --skip", "ref*", "write"),
    "git clean": Synopsis("-d -f -n -q -x -X -e= --force --dry-run --quiet --exclude=", "delete*", "write"),
    "git init": Synopsis("-q -b= --quiet --bare --initial-branch=", "write", "write"),
    "git fetch": Synopsis("-a -p -t -q -v -f --all --prune --tags --quiet --verbose --depth= --unshallow --no-tags"
                      " --force", "data*", "network"),
    "git pull": Synopsis("-q -v --rebase? --ff-only --no-rebase --quiet --verbose --prune --tags", "data*", "network"),
    "git push": Synopsis("-u -q -v -n --set-upstream --quiet --verbose --dry-run --tags --follow-tags", "data*",
                     "network"),
    "git ls-remote": Synopsis("-h -t -q --heads --tags --refs --quiet --exit-code --symref --sort=", "data*", "network"),
}  # fmt: skip

SYNOPSES = {**_LOOKING, **_CHANGING}
GLOBALS = ("--no-pager", "-P", "--no-optional-locks")

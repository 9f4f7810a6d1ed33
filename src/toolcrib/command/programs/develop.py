"""Package managers, builders, test runners, containers: commands that only look, and those that run the project's code.

Test runners and builders run unasked: what they run lies in the workspace and inside the sandbox. Their
effect is `exec`, so that a policy may ask all the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolcrib.command.not_proved import NotProved
from toolcrib.command.programs.languages import no_argument_file
from toolcrib.command.programs.options import Arguments, Synopsis

_GOALS = {"test", "tests", "check", "lint", "build", "all", "fmt", "format", "typecheck", "docs", "coverage"}
# Scripts of package.json that check.
_SCRIPTS = (
    "test", "lint", "typecheck", "type-check", "check", "coverage", "tsc", "test:unit", "test:ci",
    "test:coverage", "lint:check", "format:check", "check-types", "check:types",
)  # fmt: skip
# Tasks of gradle, in any project (`:app:test`).
_TASKS = re.compile(
    r"(?::?[\w-]+:|:)*(?:\w*[tT]est\w*|check|build|assemble\w*|compile\w*|\w*[cC]lasses|jar|lint\w*|detekt|\w+Check|tasks"
    r"|projects|properties|dependencies|help)"
)
_PHASES = {"validate", "compile", "test-compile", "test", "package", "verify"}
# What stands before a check that these run from the project's own packages.
RUNNERS = {
    "uv": r" run((?: (?:--frozen|--locked|--offline|--no-sync|--quiet|-q|--all-extras|--all-packages|--(?:package|extra|group)[= ][\w-]+))*)",
    "npx": r"((?: (?:--no|--no-install|--offline|--quiet|-q))*)",
    "pnpm": " exec", "yarn": " exec", "poetry": " run", "pdm": " run", "pipenv": " run", "hatch": " run", "rye": " run", "bundle": " exec",
}  # fmt: skip
MAX_BEFORE = 8
# Where a project has programs of its own.
PROJECT_PROGRAMS = re.compile(
    r"(?:\./)?(?:(?:[\w-]+/)*(?:\.?venv|env)/bin|(?:[\w@-]+/)*node_modules/\.bin|vendor/bin)/([\w.-]+)|\./(gradlew|mvnw)"
)


def _goals(found: Arguments) -> None:
    """Accepts only goals of make on a list. A variable on its command line could be SHELL."""
    goals = set(found.of("data"))
    if goals - _GOALS or not (goals or found.options & {"--version", "-v"}):
        raise NotProved("make: a goal or variable that is not on its list")


def _tasks(found: Arguments) -> None:
    if not found.of("data") or not all(map(_TASKS.fullmatch, found.of("data"))):
        raise NotProved("gradlew: a task that is not on its list")


def _phases(found: Arguments) -> None:
    if not found.of("data") or not set(found.of("data")) <= _PHASES:
        raise NotProved("mvnw: a phase that is not on its list")


def _version(found: Arguments) -> None:
    if not found.options & {"-V", "-v", "--version", "-version"}:
        raise NotProved("runs code")


def _no_emit(found: Arguments) -> None:
    if not found.options & {"--noEmit", "--version", "-v"}:
        raise NotProved("tsc: without --noEmit it writes files")


def _many_packages(found: Arguments) -> None:
    """Of one package that is a program, go build puts that program beside the sources; of several it only compiles."""
    if not any(name.endswith("...") for name in found.of("read")):
        raise NotProved("go build: leaves a program in the folder (./... compiles all packages)")


_PYTEST = Synopsis(
    "-qvxsl -k= -m= -r= -n= -# --quiet --verbose --exitfirst --lf --ff --last-failed --failed-first --nf --sw"
    " --stepwise --maxfail= --tb= --durations= --durations-min= --co --collect-only --no-header --no-summary"
    " --showlocals --color= --disable-warnings --markers --fixtures --deselect= --version --strict-markers"
    " --capture= --numprocesses= --cache-show? --sw-skip --exitfirst -h --help --timeout= --asyncio-mode=",
    "read*",
    "exec",
    plain=True,
    check=no_argument_file,
    below="always",
    here=True,
)
_MYPY = Synopsis(
    "--strict --no-color-output --pretty --show-error-codes --version",
    "read*",
    "exec",
    plain=True,
    check=no_argument_file,
    below="always",
    here=True,
)
_LINT = Synopsis(
    "-q --quiet --count --statistics --max-line-length= --select= --ignore= --max-warnings= --diff --no-color"
    " --version",
    "read*",
    "exec",
    plain=True,
    check=no_argument_file,
)
_SCRIPT = Synopsis("--silent -s --workspaces --if-present", "", "exec", plain=True)
_CHECKS = {
    "vitest run": "--reporter= --coverage -t= --testNamePattern= --no-color --silent --passWithNoTests --bail= --run",
    "jest": "--ci --coverage -t= --testNamePattern= --testPathPattern= --testPathPatterns= --verbose --silent --runInBand -i --bail? -b"
    " --passWithNoTests --maxWorkers= -w= --no-color --colors --findRelatedTests --onlyFailures -o --changedSince= --json --listTests"
    " --no-cache --detectOpenHandles --forceExit --selectProjects=",
    "mocha": "-R= -t= -g= -b --reporter= --timeout= --grep= --recursive --exit --bail --parallel",
    "pyright": "--stats --verbose --warnings --level= --pythonversion= --outputjson",
    "rspec": "-f= -e= -t= --format= --example= --tag= --no-color --fail-fast --order= --seed=",
    "rubocop": "--format= -f= --only= --parallel -P --no-color --display-cop-names -D --lint -l",
    "phpunit": "--filter= --testsuite= --group= --no-coverage --stop-on-failure --testdox --colors?",
    "mix test": "--failed --only= --exclude= --seed= --trace --stale --max-failures= --cover",
    "mix format --check-formatted": "",
    "dotnet test": "--no-restore --no-build --nologo -c= --configuration= --filter= -v= --verbosity= --logger= -l=",
    "swift test": "--filter= --parallel -v --verbose --skip-build",
    "deno test": "--fail-fast --filter= --no-check -q --quiet", "deno lint": "-q --quiet --json", "deno check": "-q --quiet",
    "golangci-lint run": "-v --verbose --timeout= --new --fast --disable-all --enable= -E= -D=", "staticcheck": "-f= -checks=",
    "flutter test": "--no-pub --coverage --name= --plain-name=", "flutter analyze": "--no-pub", "dart test": "-n= --name= -r= --reporter=",
    "dart analyze": "--fatal-infos --fatal-warnings", "vue-tsc --noEmit": "", "svelte-check": "--no-tsconfig --threshold= --output=",
}  # fmt: skip
_CARGO = (
    "-q -v -p= -F= -j= --quiet --verbose --release --all --workspace --lib --bins --bin= --tests --test= --examples"
    " --example= --benches --bench= --all-targets --features= --all-features --no-default-features --package="
    " --exclude= --jobs= --locked --offline --frozen --no-fail-fast --no-run --doc --color= --message-format="
    " --keep-going --profile="
)
_GO = "-v -race! -short! -failfast! -count= -run= -timeout= -bench= -benchmem! -cover! -json! -skip= -parallel= -cpu="
_DOCKER = "-a -q -l -n= -s --all --quiet --latest --no-trunc --size --filter= --format="

SYNOPSES: dict[str, Synopsis] = {
    "pytest": _PYTEST,
    "py.test": _PYTEST,
    **{check: Synopsis(options, "read*", "exec", plain=True, check=no_argument_file) for check, options in _CHECKS.items()},
    "vitest": Synopsis("--run --reporter= --coverage --silent", "read*", "exec", plain=True, needs="--run"),
    "gradlew": Synopsis("-q -i -s -S -x= --offline --quiet --info --stacktrace --no-daemon --daemon --parallel --continue --console="
                       " --warning-mode= --rerun-tasks --build-cache --no-build-cache --exclude-task= --tests= --no-parallel",
                       "data*", "exec", plain=True, check=_tasks),
    "mvnw": Synopsis("-q -o -B -e -pl= -am! -ntp! -fae! -fn! -ff! -T= -DskipTests! -DskipITs! -Dtest= -Dit.test= --quiet --offline"
                    " --batch-mode --no-transfer-progress --fail-at-end --projects= --also-make", "data*", "exec", plain=True,
                    check=_phases),
    "tox": Synopsis("-q -v -e= --recreate", "", "exec"),
    "make": Synopsis("-s -k -j? -B -i -n --silent --quiet --keep-going --jobs? --dry-run --always-make"
                 " --no-print-directory --version -v", "data*", "exec", plain=True, check=_goals),
    "just": Synopsis("--list -l --summary --version", "", "exec"),
    **{f"{name} test": _SCRIPT for name in ("npm", "pnpm", "yarn", "bun")},
    "npm t": _SCRIPT,
    **{f"{name} run {script}": _SCRIPT for name in ("npm", "pnpm", "yarn", "bun") for script in _SCRIPTS},
    **{f"{name} {script}": _SCRIPT for name in ("pnpm", "yarn") for script in _SCRIPTS if script not in ("test", "check")},
    "npm": Synopsis("-v --version", ""),
    "npm ls": Synopsis("-a -g -l -p --link --package-lock-only --all --depth= --json --parseable --long --omit= --include= --global", "data*"),
    "npm list": Synopsis("-a -g -l -p --link --package-lock-only --all --depth= --json --parseable --long --omit= --include= --global", "data*"),
    "npm root": Synopsis("-g", ""),
    "npm prefix": Synopsis("-g", ""),
    **dict.fromkeys(("npm explain", "npm why"), Synopsis("--json", "data*")),
    "npm query": Synopsis("--json -g --global -w= --workspace= --workspaces --package-lock-only", "data"),
    "npm pkg get": Synopsis("--json --ws --workspaces -w= --workspace=", "data*"),
    **dict.fromkeys(("npm cache ls", "npm cache npx ls"), Synopsis("", "data*")),
    "npm help-search": Synopsis("-l --long", "data*"),
    "npm completion": Synopsis("", ""),
    "npm help": Synopsis("", "data*", plain=False),
    **{f"npm {verb}": Synopsis("--json --long", "data*", "network")
       for verb in ("view", "info", "show", "outdated", "search", "ping", "audit")},
    **{f"{tool} {verb}": Synopsis("--json", "data*", "network")
       for tool in ("yarn", "pnpm") for verb in ("info", "why", "outdated", "audit", "view")},
    "yarn": Synopsis("-v --version", "", "exec", check=_version),
    "yarn list": Synopsis("--depth= --json --pattern=", "", "exec"),
    "pnpm": Synopsis("-v --version", "", "exec"),
    "pnpm list": Synopsis("--depth= --json -r", "", "exec"),
    **{f"npm {verb}": Synopsis("-g -D -E -O --save-dev --save-exact --no-save --save --global --omit= --legacy-peer-deps"
                           " --production --ignore-scripts", "data*", "exec")
       for verb in ("install", "i", "ci", "add", "update", "uninstall", "remove")},
    "npm run": Synopsis("--silent -s", "data", "exec", reading=Synopsis("--json", "")),
    "yarn add": Synopsis("-D --dev --exact", "data*", "exec"),
    "yarn install": Synopsis("--frozen-lockfile --immutable", "", "exec"),
    "pnpm install": Synopsis("--frozen-lockfile -D", "data*", "exec"),
    **{f"{pip} {verb}": usage for pip in ("pip", "pip3") for verb, usage in {
        "list": Synopsis("-l --format= --local --user --editable --not-required --exclude= --disable-pip-version-check"),
        "show": Synopsis("-f --files --verbose -v --disable-pip-version-check", "data*"),
        "freeze": Synopsis("-l --local --user --all --exclude-editable --exclude=", ""),
        "check": Synopsis("--disable-pip-version-check", ""),
        "--version": Synopsis("", ""),
        "-V": Synopsis("", ""),
        "install": Synopsis("-e=< -r=< -q -U -v --upgrade --quiet --user --editable=< --requirement=< --no-deps --pre"
                        " --no-input --disable-pip-version-check", "data*", "exec"),
        "uninstall": Synopsis("-y --yes", "data*", "exec"),
        "download": Synopsis("", "data*", "exec"),
    }.items()},
    "uv pip list": Synopsis("--format= -q", "", "exec"),
    "uv --version": Synopsis("", ""),
    "cargo": Synopsis("-V --version", "", "exec", plain=True),
    "cargo --version": Synopsis("", "", "exec", plain=True),
    **{f"cargo {verb}": Synopsis(_CARGO, "data", "exec", plain=True) for verb in ("test", "check", "build", "clippy", "bench")},
    "cargo fmt": Synopsis("--check --all -q", "", "write"),
    "cargo fmt --check": Synopsis("--all -q", "", "exec", plain=True),
    "cargo tree": Synopsis("-q -i= -p= -e= -d --depth= --invert= --package= --edges= --duplicates --workspace --locked"
                       " --offline --prefix= --features= --all-features --no-default-features --target= --charset= --format= --no-dedupe", "data", "exec",
                       plain=True),
    "cargo metadata": Synopsis("--no-deps --format-version= --offline --locked --frozen -q --quiet --features= --all-features"
                           " --no-default-features --filter-platform=", "", "exec", plain=True),
    "cargo locate-project": Synopsis("--workspace --message-format= -q", "", "exec", plain=True),
    "cargo pkgid": Synopsis("-p= --package= --offline --locked", "data", "exec", plain=True),
    "cargo add": Synopsis("--dev --features=", "data*", "network"),
    "cargo run": Synopsis(_CARGO, "data*", "exec"),
    "rustc": Synopsis("-V -v --version --verbose", "", "exec", plain=True, check=_version),
    "rustup show": Synopsis("", "", "exec"),
    "go version": Synopsis("", "", "exec", plain=True),
    "go env": Synopsis("-json!", "data*", "exec", plain=True),
    **{f"go {verb}": Synopsis(_GO, "read*", "exec", plain=True) for verb in ("test", "vet")},
    "go build": Synopsis(_GO, "read*", "exec", plain=True, check=_many_packages),
    "go list": Synopsis("-f= -m -u -json! -deps! -test! -e -find! -compiled! -versions! -tags=", "data*", "exec", plain=True),
    "go doc": Synopsis("-all! -c -cmd! -short! -src! -u", "data*", "exec", plain=True),
    "go help": Synopsis("", "data*", "exec", plain=True),
    "go clean": Synopsis("-n -i -r -cache! -testcache! -modcache!", "", "exec", plain=True, needs="-n"),
    "go run": Synopsis("", "read*", "exec"),
    "go get": Synopsis("-u -d -t", "data*", "exec"),
    "go mod": Synopsis("", "data*", "exec"),
    "tsc": Synopsis("--noEmit --version -v --pretty --strict", "", "exec", plain=True, check=_no_emit),
    "ruff check": Synopsis("--select= --ignore= --no-cache --output-format= --statistics --quiet -q --show-settings"
                       " --no-fix --diff", "read*", "exec", plain=True, check=no_argument_file, below="always", here=True),
    "ruff format --check": Synopsis("--diff --quiet -q --no-cache", "read*", "exec", plain=True,
                                check=no_argument_file),
    "ruff format": Synopsis("--check --diff --quiet -q --no-cache", "read*", "write"),
    "mypy": _MYPY,
    **{f"{python} -m {check}": usage for python in ("python", "python3") for check, usage in {
        "pytest": _PYTEST, "mypy": _MYPY,
        "unittest": Synopsis("-v -q -f -b -k= --verbose --quiet --failfast", "data*", "exec", plain=True)}.items()},
    **dict.fromkeys(("flake8", "eslint", "black --check", "isort --check", "isort --check-only", "prettier --check"), _LINT),
    **{python: Synopsis("-V --version", "", check=_version, otherwise="runs code") for python in ("python", "python3", "deno")},
    **{python: Synopsis("-v --version", "", check=_version, otherwise="runs code") for python in ("node", "ruby", "perl", "php")},
    "java": Synopsis("-version! --version", "", check=_version),
    # -v and -V are listed where they ask for the version: `vim -v` would read commands, `mysql -v` would connect.
    **{tool: Synopsis(options, "", check=_version, otherwise="only its version is asked for unasked") for options, tools in (
        ("--version", "cmake ninja gh aws black isort bash zsh vim emacs sqlite3 prettier helm"),
        ("--version -V", "uv rustup psql mysql ruff nano"),
        ("--version -v", "gcc g++ clang clang++ redis-cli"),
    ) for tool in tools.split()},
    "docker": Synopsis("--version -v", "", check=_version, otherwise="only its version is asked for unasked"),
    # a daemon or a cluster answers: it may be far away, and it may tell secrets
    **{f"docker {verb}": Synopsis(_DOCKER, "data*", "network") for verb in (
        "ps", "images", "version", "info", "inspect", "logs", "port", "top", "stats", "history", "search",
        "container ls", "image ls", "network ls", "volume ls", "compose ps", "compose config", "compose ls")},
    **{f"kubectl {verb}": Synopsis("-n= -o= -l= -A -w --namespace= --output= --selector= --all-namespaces --show-labels"
                               " --no-headers --sort-by= --tail= --since= --previous -c= --container=", "data*", "network")
       for verb in ("get", "describe", "logs", "version", "explain", "top", "api-resources", "config view",
                    "config current-context", "config get-contexts", "cluster-info", "events")},
    **{f"gh {verb}": Synopsis("-R= -L= -s= -l= --repo= --limit= --state= --json= --jq= --label= --author= --comments",
                          "data*", "network")
       for verb in ("pr list", "pr view", "pr diff", "pr status", "pr checks", "issue list", "issue view", "run list",
                    "run view", "repo view", "release list", "auth status", "status")},
    "systemctl status": Synopsis("--no-pager -l -n=", "data*", plain=False),
    "journalctl": Synopsis("-n= -u= --no-pager --since= --until= -p=", "", plain=False),
}  # fmt: skip
GLOBALS = {
    "npm": ("--silent",),
    "pnpm": ("-r", "--recursive", "-s", "--silent"),
    "yarn": ("-s", "--silent"),
    "cargo": ("-q", "--quiet"),
    "pip": ("--disable-pip-version-check",),
}


def own_check(argv: Sequence[str | None]) -> tuple[str, int] | None:
    """The program that a runner starts, or that lies among the project's own, and where its arguments begin.

    >>> own_check(["uv", "run", "--frozen", "pytest", "-q"]), own_check(["./gradlew", "test"]), own_check(["uv", "sync"])
    (('pytest', 4), ('gradlew', 1), None)
    """
    first = argv[0] or ""
    if (own := PROJECT_PROGRAMS.fullmatch(first)) is not None:
        return own[1] or own[2], 1
    before = RUNNERS.get(first)
    if before is None:
        return None
    for at in range(1, min(len(argv), MAX_BEFORE)):
        name = argv[at]
        if name is None:
            return None
        if not name.startswith("-") and re.fullmatch(before, "".join(f" {word}" for word in argv[1:at])):
            return name, at + 1
    return None

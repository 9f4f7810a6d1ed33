"""Package managers, builders, test runners, containers: commands that only look, and those that run the project's code.

Test runners and builders run unasked: what they run lies in the workspace and inside the sandbox. Their
effect is `exec`, so that a policy may ask all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from toolcrib.command.not_proved import NotProved
from toolcrib.command.plan import Word
from toolcrib.command.programs.checks import no_argument_file
from toolcrib.command.programs.options import Arguments, Synopsis
from toolcrib.dataclass import replace

_GOALS = {
    "test", "tests", "check", "lint", "build", "all", "fmt", "format", "typecheck", "docs", "coverage", "help",
}  # fmt: skip
# Scripts of package.json that check or build.
_SCRIPTS = (
    "test", "lint", "typecheck", "type-check", "check", "coverage", "tsc", "build", "test:unit", "test:ci",
    "test:coverage", "lint:check", "format:check", "check-types", "check:types",
)  # fmt: skip
_RAKE = {"test", "spec", "lint", "check", "build", "rubocop", "default"}
_TOLD = re.compile(r"term(?:-missing)?(?::skip-covered)?|")
# What a test program of Rust, and clippy, take from cargo after `--`.
_RUST_TESTS = re.compile(
    r"(?!-)[\w:]+|--(?:nocapture|no-capture|ignored|include-ignored|exact|show-output|list|quiet|test|bench)|-q"
    r"|--(?:test-threads|skip|color|format)(?:=[\w:]+)?"
)
# What test programs of JavaScript take from a script of package.json, beside names of files.
_JS_TESTS = re.compile(
    r"-[tgib]|--(?:bail|ci|coverage|detectOpenHandles|exit|forceExit|listTests|maxWorkers|no-cache|no-color|no-watch|onlyFailures"
    r"|passWithNoTests|reporter|run|runInBand|silent|timeout|verbose)(?:=([^/]*))?"
    r"|--watch(?:All)?=false|--(?:grep|testNamePattern|testPathPatterns?)(?:=(.*))?",
    re.DOTALL,
)
_LINT_LEVELS = re.compile(r"-[DWAF](?:[\w:-]+)?|(?!-)[\w:-]+")
# Tasks of gradle, in any project (`:app:test`).
_TASKS = re.compile(
    r"(?::?[\w-]+:|:)*(?:\w*[tT]est\w*|check|build|assemble\w*|compile\w*|\w*[cC]lasses|jar|lint\w*|detekt|\w+Check|tasks"
    r"|projects|dependencies|help)"
)
_PHASES = {"validate", "compile", "test-compile", "test", "package", "verify"}
# What stands before a check that these run from the project's own packages.
RUNNERS = {
    "uv": r" run((?: (?:--frozen|--locked|--offline|--no-sync|--quiet|-q|--all-extras|--all-packages|--(?:package|extra|group)[= ][\w-]+))*)",
    "npx": r"((?: (?:--no|--no-install|--offline|--quiet|-q))*)",
    "pnpm": " exec", "yarn": " exec", "poetry": " run", "pdm": " run", "pipenv": " run", "hatch": " run", "rye": " run", "bundle": " exec",
}  # fmt: skip
MAX_BEFORE = 8
# Options, or a sub-command, before a sub-command: the folder in which it begins, and the package of the project that it is for.
_FOLDERS = {
    "git": ("-C",), "go": ("-C",), "npm": ("-C", "--prefix"), "pnpm": ("-C", "--dir"), "yarn": ("--cwd",),
}  # fmt: skip
_PACKAGES = {"npm": ("-w", "--workspace"), "pnpm": ("-F", "--filter"), "yarn": ("workspace",)}
_PACKAGE = re.compile(r"(?:@[\w-]+/|\./)?\w[\w.-]*(?:/\w[\w.-]*)*")
# Where a project has programs of its own.
PROJECT_PROGRAMS = re.compile(
    r"(?:\./)?(?:(?:[\w-]+/)*(?:\.?venv|env)/bin|(?:[\w@-]+/)*node_modules/\.bin|vendor/bin)/([\w.-]+)|\./(gradlew|mvnw)"
)


def _goals(found: Arguments) -> None:
    """Accepts no goal, which is the project's first, or those on a list. A variable among them could be SHELL."""
    if set(_without_jobs(found)) - _GOALS:
        raise NotProved("make: a goal or variable that is not on its list")
    if sum(option in ("-C", "--directory") for option, _ in found.values) > 1:
        raise NotProved("make: a folder in a folder")


def _without_jobs(found: Arguments) -> list[str]:
    """The operands but the number in `-j 4`."""
    jobs = bool(found.options & {"-j", "--jobs", "--parallel"})
    return [text for text in found.of("data") if not (jobs and text.isdigit())]


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
    """Requires several packages: go build puts the program of a single package beside its sources."""
    if not any(name.endswith("...") for name in found.of("read")):
        raise NotProved("go build: leaves a program in the folder (./... compiles all packages)")


def _tasks_of_rake(found: Arguments) -> None:
    if set(found.of("data")) - _RAKE:
        raise NotProved("rake: a task or variable that is not on its list")


def _targets(found: Arguments) -> None:
    if set(found.of("data")) - _GOALS:
        raise NotProved("a target that is not on its list")


def _build_folder(found: Arguments) -> None:
    """`cmake --build DIR`, perhaps of a target on a list."""
    if any(word.literal not in _GOALS for option, word in found.values if option in ("-t", "--target")):
        raise NotProved("cmake: a target that is not on its list")
    places = _without_jobs(found)
    found.operands = [(word, "read") for word, _ in found.operands if word.literal in places]
    if len(found.operands) != 1:
        raise NotProved("cmake: not one folder")


def _no_dash_values(found: Arguments) -> None:
    if any(word.prefix.startswith("-") for _, word in found.values):
        raise NotProved("ctest: a value that may be an option")


def _script(found: Arguments) -> None:
    """A shell that reads commands from a terminal runs them, also with -n."""
    if not found.operands or found.of("read") == ["-"]:
        raise NotProved("runs what its input says")


def _coverage(found: Arguments) -> None:
    """Coverage is told, not written to a file whose name an option gives."""
    no_argument_file(found)
    for option, word in found.values:
        if option == "--cov-report" and (word.literal is None or not _TOLD.fullmatch(word.literal)):
            raise NotProved("pytest: a report that is a file")


def _handed_on(found: Arguments) -> None:
    """Takes what npm hands on to a script: options of test programs, and names of files, or patterns of them, to read."""
    files: list[tuple[Word, str]] = []
    for word, _ in found.operands:
        if word.substitutions:
            raise NotProved("an argument that a script is handed is only known when it runs")
        if not word.prefix.startswith("-"):
            files.append((word, "read"))
        elif (option := _JS_TESTS.fullmatch(word.literal or "")) is None:
            raise NotProved(f"{word.spelled}, which a script is handed, is not on its list")
        elif value := option[1] or option[2]:
            files.append((Word((value,)), "read"))
    found.operands = files


def _report(found: Arguments) -> None:
    """Refuses a report that is a file: `--output-format=json:FILE`."""
    no_argument_file(found)
    if any(
        ":" in (word.literal or ":") for option, word in found.values if option in ("-f", "--output-format")
    ):
        raise NotProved("pylint: a report that is a file")


def _after_dashes(arguments: re.Pattern[str]) -> Callable[[Arguments], None]:
    """Checks what cargo hands on, which is all operands but perhaps a first name."""

    def check(found: Arguments) -> None:
        if not all(arguments.fullmatch(text) for text in found.of("data")):
            raise NotProved("cargo: an argument that it hands on is not on its list")

    return check


_PYTEST = Synopsis(
    "--cov? --cov-report= --cov-branch --cov-fail-under= --no-cov"
    " -qvxsl -k= -m= -r= -n= -# --quiet --verbose --exitfirst --lf --ff --last-failed --failed-first --nf --sw"
    " --stepwise --maxfail= --tb= --durations= --durations-min= --co --collect-only --no-header --no-summary"
    " --showlocals --color= --disable-warnings --markers --fixtures --deselect= --version --strict-markers"
    " --capture= --numprocesses= --cache-show? --sw-skip --exitfirst -h --help --timeout= --asyncio-mode=",
    "read*",
    "exec",
    plain=True,
    check=_coverage,
    below="always",
    here=True,
)
_MYPY = Synopsis(
    "--ignore-missing-imports --no-incremental --no-error-summary --show-error-context --show-column-numbers --hide-error-context"
    " --check-untyped-defs --disallow-untyped-defs --warn-unreachable --warn-unused-ignores --namespace-packages"
    " --explicit-package-bases --follow-imports= --python-version= --platform= --exclude= -p= -m= -v"
    " --strict --no-color-output --pretty --show-error-codes --version",
    "read*",
    "exec",
    plain=True,
    check=no_argument_file,
    below="always",
    here=True,
)
_LINT = Synopsis(
    "-q --quiet --count --statistics --max-line-length= --select= --ignore= --max-warnings= --diff --no-color"
    " --ext= --version",
    "read*",
    "exec",
    plain=True,
    check=no_argument_file,
)
_PYLINT = Synopsis(
    "-E -v -j= -d= -e= -f= --errors-only --verbose --jobs= --disable= --enable= --output-format= --fail-under= --fail-on= --ignore="
    " --ignore-patterns= --recursive= --score= --reports= --py-version= --version",
    "read*",
    "exec",
    plain=True,
    check=_report,
    below="always",
)
_BANDIT = Synopsis(
    "-r -l -i -q -v -a= -n= -t= -s= -f= -x= --recursive --severity-level= --confidence-level= --aggregate= --number= --tests= --skip="
    " --format= --exclude= --quiet --silent --verbose --ignore-nosec --exit-zero --version",
    "read*",
    "exec",
    plain=True,
    check=no_argument_file,
    below="recursive",
)
_RUFF = Synopsis(
    "--select= --ignore= --no-cache --output-format= --statistics --quiet -q --show-settings --no-fix --diff",
    "read*",
    "exec",
    plain=True,
    check=no_argument_file,
    below="always",
    here=True,
)
_RUFF_FORMAT = Synopsis("--diff --quiet -q --no-cache", "read*", "exec", plain=True, check=no_argument_file)
_SCRIPT = Synopsis("--silent -s --workspaces --if-present", "data*", "exec", plain=True, check=_handed_on)
_NPM_SCRIPT = replace(_SCRIPT, options=f"{_SCRIPT.options} -w=< --workspace=<")
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
    **dict.fromkeys(("gradlew", "gradle"), Synopsis("-q -i -s -S -x= --offline --quiet --info --stacktrace --no-daemon --daemon --parallel --continue --console="
                       " --warning-mode= --rerun-tasks --build-cache --no-build-cache --exclude-task= --tests= --no-parallel",
                       "data*", "exec", plain=True, check=_tasks)),
    **dict.fromkeys(("mvnw", "mvn"), Synopsis("-q -o -B -e -pl= -am! -ntp! -fae! -fn! -ff! -T= -DskipTests! -DskipITs! -Dtest= -Dit.test= --quiet --offline"
                    " --batch-mode --no-transfer-progress --fail-at-end --projects= --also-make", "data*", "exec", plain=True,
                    check=_phases)),
    "tox": Synopsis("-q -v -e= --recreate", "", "exec"),
    "make": Synopsis("-C=< --directory=< -s -k -j? -B -i -n --silent --quiet --keep-going --jobs? --dry-run --always-make"
                 " --no-print-directory --version -v", "data*", "exec", plain=True, check=_goals),
    "ctest": Synopsis("-V -Q -R= -E= -L= -LE= -j= -C= -VV! --output-on-failure --verbose --extra-verbose --quiet --progress --stop-on-failure"
                  " --rerun-failed --schedule-random --tests-regex= --exclude-regex= --label-regex= --label-exclude= --parallel="
                  " --build-config= --repeat= --timeout= --no-tests= --test-dir=<", "", "exec", plain=True, check=_no_dash_values),
    "cmake --build": Synopsis("-v -j? -t= --verbose --parallel? --target= --config=", "data*", "exec", plain=True, check=_build_folder),
    "ninja": Synopsis("-C=< -v -n -j= -k= --verbose --quiet --version", "data*", "exec", plain=True, check=_targets),
    **dict.fromkeys(("meson test", "meson compile"), Synopsis(
        "-C=< -q -v -j= --quiet --verbose --print-errorlogs --no-rebuild --list --suite= --num-processes= --jobs=", "data*", "exec",
        plain=True, check=_targets)),
    "rake": Synopsis("-n -P -T? --dry-run --tasks? --prereqs", "data*", "exec", plain=True, check=_tasks_of_rake),
    "just": Synopsis("--list -l --summary --version", "", "exec", plain=True),
    **{f"{name} test": _SCRIPT for name in ("pnpm", "yarn", "bun")},
    **dict.fromkeys(("npm test", "npm t", *(f"npm run {script}" for script in _SCRIPTS)), _NPM_SCRIPT),
    **{f"{name} run {script}": _SCRIPT for name in ("pnpm", "yarn", "bun") for script in _SCRIPTS},
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
    # These may be a release of themselves that the project keeps.
    **dict.fromkeys(("yarn", "pnpm"), Synopsis("-v --version", "", "exec", plain=True, check=_version)),
    "yarn list": Synopsis("--depth= --json --pattern=", "", "exec", plain=True),
    **dict.fromkeys(("pnpm list", "pnpm ls"), Synopsis("--depth= --json -r", "", "exec", plain=True)),
    **{f"npm {verb}": Synopsis("-g -D -E -O --save-dev --save-exact --no-save --save --global --omit= --legacy-peer-deps"
                           " --production --ignore-scripts", "data*", "exec")
       for verb in ("install", "i", "ci", "add", "update", "uninstall", "remove")},
    "npm run": Synopsis("--silent -s", "data", "exec", reading=Synopsis("--json", "")),
    "yarn add": Synopsis("-D --dev --exact", "data*", "exec"),
    "yarn install": Synopsis("--frozen-lockfile --immutable", "", "exec"),
    "pnpm install": Synopsis("--frozen-lockfile -D", "data*", "exec"),
    **{f"{pip} {verb}": usage for pip in ("pip", "pip3") for verb, usage in {
        "list": Synopsis("-l --format= --local --user --editable --not-required --exclude-editable --exclude= --disable-pip-version-check"),
        "show": Synopsis("-f --files --verbose -v --disable-pip-version-check", "data*"),
        "freeze": Synopsis("-l --local --user --all --exclude-editable --exclude=", ""),
        "check": Synopsis("--disable-pip-version-check", ""),
        "inspect": Synopsis("--local --user --disable-pip-version-check", ""),
        "--version": Synopsis("", ""),
        "-V": Synopsis("", ""),
        "install": Synopsis("-e=< -r=< -q -U -v --upgrade --quiet --user --editable=< --requirement=< --no-deps --pre"
                        " --no-input --disable-pip-version-check", "data*", "exec"),
        "uninstall": Synopsis("-y --yes", "data*", "exec"),
        "download": Synopsis("", "data*", "exec"),
    }.items()},
    **dict.fromkeys(("uv pip list", "uv pip freeze"), Synopsis("--format= -q", "", "exec", plain=True)),
    "uv pip show": Synopsis("-q", "data*", "exec", plain=True),
    "uv --version": Synopsis("", ""),
    "cargo": Synopsis("-V --version", "", "exec", plain=True),
    "cargo --version": Synopsis("", "", "exec", plain=True),
    **{f"cargo {verb}": Synopsis(_CARGO, "data", "exec", plain=True) for verb in ("check", "build")},
    **{f"cargo {verb}": Synopsis(_CARGO, "data*", "exec", plain=True, check=_after_dashes(arguments))
       for verb, arguments in (("test", _RUST_TESTS), ("bench", _RUST_TESTS), ("clippy", _LINT_LEVELS))},
    "cargo fmt": Synopsis("--check --all -q", "", "write"),
    **dict.fromkeys(("cargo fmt --check", "cargo fmt -- --check"), Synopsis("--all -q", "", "exec", plain=True)),
    "cargo fmt --all -- --check": Synopsis("", "", "exec", plain=True),
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
    "tsc": Synopsis("--noEmit --version -v --pretty --strict --skipLibCheck -p=< --project=<", "", "exec", plain=True, check=_no_emit),
    "ruff check": _RUFF,
    "ruff format --check": _RUFF_FORMAT,
    "ruff format": Synopsis("--check --diff --quiet -q --no-cache", "read*", "write"),
    "mypy": _MYPY, "pylint": _PYLINT, "bandit": _BANDIT,
    **{f"{python} -m {check}": usage for python in ("python", "python3") for check, usage in {
        "pytest": _PYTEST, "mypy": _MYPY, "pylint": _PYLINT, "bandit": _BANDIT, "ruff check": _RUFF, "ruff format --check": _RUFF_FORMAT,
        **dict.fromkeys(("flake8", "black --check", "isort --check", "isort --check-only"), _LINT),
        "unittest": Synopsis("-v -q -f -b -k= --verbose --quiet --failfast", "data*", "exec", plain=True),
        "unittest discover": Synopsis("-v -q -f -b -k= -s=< -p= -t=< --verbose --quiet --failfast --start-directory=< --pattern="
                                      " --top-level-directory=<", "read", "exec", plain=True),
        # Each of these may be a module of the project that has its name.
        "json.tool": Synopsis("--indent= --sort-keys --compact --json-lines --no-ensure-ascii --tab --no-indent", "read", "exec", plain=True),
        "py_compile": Synopsis("-q --quiet", "read*", "exec", plain=True),
        "compileall": Synopsis("-q -f -l -j= -x=", "read*", "exec", plain=True, below="always"),
    }.items()},
    **dict.fromkeys(("flake8", "eslint", "black --check", "isort --check", "isort --check-only", "prettier --check"), _LINT),
    **{python: Synopsis("-V --version", "", check=_version, otherwise="runs code") for python in ("python", "python3", "deno")},
    **{python: Synopsis("-v --version", "", check=_version, otherwise="runs code") for python in ("node", "ruby", "perl", "php")},
    # Syntax is checked: of these languages by programs that may run a part of the file, or load what its first line names.
    **dict.fromkeys(("ruby -c", "perl -c", "php -l", "node --check", "node -c"), Synopsis("", "read", "exec", plain=True)),
    **dict.fromkeys(("bash -n", "sh -n", "dash -n"), Synopsis("", "read", check=_script)),
    "java": Synopsis("-version! --version", "", check=_version),
    # -v and -V are listed where they ask for the version: `vim -v` would read commands, `mysql -v` would connect.
    **{tool: Synopsis(options, "", check=_version, otherwise="runs unasked only to print its version") for options, tools in (
        ("--version", "cmake gh aws black isort bash zsh vim emacs sqlite3 prettier helm"),
        ("--version -V", "uv rustup psql mysql ruff nano"),
        ("--version -v", "gcc g++ clang clang++ redis-cli"),
    ) for tool in tools.split()},
    "docker": Synopsis("--version -v", "", check=_version, otherwise="runs unasked only to print its version"),
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
    "pg_config": Synopsis("--bindir --docdir --htmldir --includedir --pkgincludedir --includedir-server --libdir --pkglibdir --localedir --mandir"
                          " --sharedir --sysconfdir --pgxs --configure --cc --cppflags --cflags --cflags_sl --ldflags --ldflags_ex --ldflags_sl"
                          " --libs --version", ""),
    "systemctl status": Synopsis("--no-pager -l -n=", "data*", plain=False),
    **{f"systemctl {verb}": Synopsis("-qal --quiet --all --full --user --system --no-pager --no-legend --plain --failed -t= --type= --state=", "data*")
       for verb in ("is-active", "is-enabled", "is-failed", "is-system-running", "get-default", "list-units", "list-unit-files", "list-timers",
                    "list-sockets", "list-jobs", "list-dependencies")},
    "journalctl": Synopsis("-n= -u= --no-pager --since= --until= -p=", "", plain=False),
}  # fmt: skip
GLOBALS = {
    "npm": ("--silent",),
    "pnpm": ("-r", "--recursive", "-s", "--silent"),
    "yarn": ("-s", "--silent"),
    "cargo": ("-q", "--quiet"),
    "pip": ("--disable-pip-version-check",),
}


def placed_before(argv: Sequence[str | None]) -> tuple[str, bool, int] | None:
    """The folder or package that stands before a sub-command, whether it is a folder, and where the rest begins.

    >>> placed_before(["git", "-C", "a", "log"]), placed_before(["npm", "--workspace=b", "test"])
    (('a', True, 3), ('b', False, 2))
    """
    name, given = argv[0] or "", (argv[1] if len(argv) > 1 else None) or ""
    for is_folder, table in ((True, _FOLDERS), (False, _PACKAGES)):
        if given in table.get(name, ()) and len(argv) > 3:
            value, at = argv[2], 3
        elif (
            (option := given.partition("="))[0] in table.get(name, ())
            and option[0].startswith("--")
            and len(argv) > 2
        ):
            value, at = option[2], 2
        else:
            continue
        if not value or value.startswith("-") or not (is_folder or _PACKAGE.fullmatch(value)):
            raise NotProved(
                f"{name}: a {'folder' if is_folder else 'package'} that is not plain, or only known when it runs"
            )
        return value, is_folder, at
    return None


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

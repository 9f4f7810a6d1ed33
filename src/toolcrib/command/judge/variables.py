"""The variables that a command may get unasked. None of them names a program, a library, a file or options.

A check that runs the project's own code (`FOO=1 pytest`) may get any other one that no program is known to obey.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

ALLOWED = re.compile(
    r"LC_[A-Z]+|LANG|LANGUAGE|TZ|NO_COLOR|FORCE_COLOR|CLICOLOR|CLICOLOR_FORCE|COLUMNS|LINES|CI|TERM|DEBUG|VERBOSE"
    r"|NODE_ENV|RUST_BACKTRACE|SOURCE_DATE_EPOCH"
)
VALUE = re.compile(r"[A-Za-z0-9_.,:@+ -]*")
# Variables that change what programs load or run, which the question then says.
LOADS = re.compile(
    r"LD_.*|DYLD_.*|.*_PRELOAD|BASH_ENV|ENV|SHELLOPTS|BASHOPTS|BASH_FUNC_.*|PS[0-4]|PROMPT_COMMAND|IFS|CDPATH|PATH|.*PATH"
    r"|PYTHON.*|NODE_(?!ENV$).*|PERL.*|RUBY.*|GEM_.*|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|GIT_.*|SSH_.*|MAKEFLAGS"
    r"|GOFLAGS|GO.*|CARGO_.*|RUSTC.*|RUSTFLAGS|CC|CXX|npm_.*|NPM_.*|PIP_.*|UV_.*|EDITOR|VISUAL|PAGER|.*_PAGER|MANPAGER"
    r"|BROWSER|LESS.*|SHELL|HOME|TMPDIR|XDG_.*|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|NLSPATH|TERMINFO.*|DOCKER_.*|KUBE.*"
    r"|PYTEST_.*|TOX_.*|COVERAGE.*|MYPY.*|RUFF_.*|MAKE.*|CMAKE_.*|MAVEN.*|GRADLE.*|JAVA.*|VIRTUAL_ENV|CONDA.*|AR|AS|LD|LD_.*|CPP|.*FLAGS|TMP|TEMP"
    r"|BASH.*|DEBUGINFOD.*|LOCAL.*|RES_.*|HOSTALIASES|MALLOC_.*|.*_LIB|.*_HOME|.*_DIR|.*_ROOT|.*_FILE|.*_URL|.*_HOST|.*_TOKEN|.*_KEY"
    r"|.*_COMMAND|.*_OPTIONS|.*_OPTS|.*_CONFIG.*|.*_PROXY|.*_proxy"
)


OWN = re.compile(r"[A-Z][A-Z0-9_]*")
OWN_VALUE = re.compile(r"[A-Za-z0-9_.-]*")


# What bash itself sets or obeys, beside what `LOADS` names.
OF_BASH = re.compile(
    r"_|.*PROXY|.*proxy|E?UID|PPID|GROUPS|RANDOM|SRANDOM|SECONDS|EPOCH.*|LINENO|FUNCNAME|PIPESTATUS|DIRSTACK|PWD|OLDPWD"
    r"|HOST.*|MACHTYPE|OSTYPE|OPT(?:ARG|ERR|IND)|REPLY|MAPFILE|READLINE_.*|COMP.*|COPROC.*|HIST.*|MAIL.*|TMOUT"
    r"|TIMEFORMAT|.*IGNORE|POSIXLY_CORRECT|PROMPT.*|CHILD_MAX|EXECIGNORE|INPUTRC|TEXTDOMAIN.*|auto_resume|histchars"
    r"|USER|LOGNAME"
)


def may_be_assigned(name: str) -> bool:
    """Whether a variable is the command's own: nothing but its `$name` reads it."""
    return not any(known.fullmatch(name) for known in (LOADS, ALLOWED, OF_BASH))


def may_reach_own_code(env: Mapping[str, str]) -> bool:
    """Whether variables may be set unasked for a command that runs the project's own code anyway."""
    return all(
        OWN.fullmatch(name) and OWN_VALUE.fullmatch(value) and not LOADS.fullmatch(name)
        for name, value in env.items()
    )


def objection(env: Mapping[str, str]) -> str | None:
    """Why variables should not be set unasked, or None."""
    for name, value in env.items():
        if LOADS.fullmatch(name):
            return f"sets {name}, which changes what programs load or run"
        if not ALLOWED.fullmatch(name):
            return f"sets the variable {name}"
        if not VALUE.fullmatch(value):
            return f"sets {name} to an odd value"
    return None

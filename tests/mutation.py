#!/usr/bin/env python3
"""Measure what the tests detect: change the code in one place, run the tests that reach it, see whether one fails.

    python tests/mutation.py --count 300 --seed 9 --out before.jsonl     a sample of mutants of every area
    python tests/mutation.py --replay before.jsonl --out after.jsonl     the same mutants in another state of the tree

It works on a copy of the tree, one mutant at a time. A first run records which test function enters which function
of the product; a mutant then runs only the tests that enter the function it changes, and stops at the first failure.
A mutant is known by its function and by the text of its statement before and after, so that it is found again after
code has moved. Every line of the result file is one mutant and what became of it.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Area:
    share: int  # of every hundred mutants
    sources: tuple[str, ...]  # below src/toolcrib
    tests: tuple[str, ...]  # below tests


AREAS = {
    "ground": Area(
        26,
        ("tool.py", "function.py", "facts.py", "spec.py", "hooks.py", "result.py", "content.py", "toolset.py",
         "field_errors.py", "parameter_names.py", "compiling/*.py", "schema/*.py", "json_text/[!l]*.py"),
        ("test_define*.py", "test_params.py", "test_schema_*.py", "test_path.py", "test_path_edges.py",
         "test_path_results.py", "test_newcomers_mistakes.py", "test_content.py", "test_one_declaration.py",
         "conformance/test_schema_cases.py", "conformance/test_core_cases.py", "conformance/test_path_cases.py"),
    ),
    "toolbox": Area(
        22,
        ("toolbox/*.py", "prepared.py", "fingerprint.py", "context.py", "call.py"),
        ("test_path*.py", "test_approvals*.py", "test_approval_attacks.py", "test_policy*.py", "test_turn.py",
         "test_early_start.py", "test_deadline*.py", "test_events*.py", "test_taint.py", "test_restricted.py",
         "test_agent*.py", "test_masking_channels.py", "test_hostile.py", "test_middleware.py",
         "conformance/test_path_cases.py", "conformance/test_core_cases.py",
         "conformance/test_approval_cases.py", "conformance/test_policy_cases.py"),
    ),
    "shell judge": Area(
        20,
        ("command/*.py", "command/judge/*.py", "command/programs/*.py", "command/launch/*.py"),
        ("test_shell_judge.py", "test_shell_corpus.py", "test_shell_hints.py", "test_shell_prefix.py",
         "test_shell_reasons.py", "test_shell_secrets.py", "test_shell_run.py", "test_shell_syntax.py",
         "test_git_places.py", "conformance/test_shell_cases.py", "conformance/test_command_cases.py"),
    ),
    "policy": Area(
        18,
        ("rules/*.py",),
        ("test_policy*.py", "test_rules*.py", "test_withheld.py", "test_trust.py", "test_approvals_store.py",
         "test_path_rules.py", "test_lists_of_names.py", "conformance/test_policy_cases.py",
         "conformance/test_approval_cases.py", "conformance/test_rules_*.py"),
    ),
    "repair": Area(
        8,
        ("repair.py", "json_text/lenient_*.py"),
        ("test_repair*.py", "conformance/test_repair_cases.py", "test_path.py"),
    ),
    "jsonstream": Area(
        6,
        ("jsonstream.py",),
        ("test_jsonstream*.py", "conformance/test_jsonstream.py"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    area: str
    path: str
    function: str
    line: int
    before: str
    after: str
    nth: int  # of the same change in the same function
    start: int  # the bytes that are replaced
    end: int
    text: str

    def key(self) -> tuple[str, str, str, int]:
        """What it is known by wherever its function stands."""
        return self.function.rpartition(".")[2], self.before, self.after, self.nth

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]

    def place(self) -> tuple[str, int, int, str]:
        return self.path, self.start, self.end, self.text


# --- what can be changed ----------------------------------------------------------------------------------------

FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
Change = tuple[ast.AST, str]


def expression_changes(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Compare(left, [op], right):
            yield node, f"({ast.unparse(ast.Compare(left, [FLIPPED[type(op)]()], right))})"
        case ast.BoolOp(op, values):
            other = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield node, f"({ast.unparse(ast.BoolOp(other, values))})"
        case ast.UnaryOp(ast.Not(), operand):
            yield node, f"({ast.unparse(operand)})"
        case ast.Constant(bool() as value):
            yield node, str(not value)
        case ast.Constant(int() as value):
            yield node, str(value + 1)
        case ast.BinOp(left, ast.Add() | ast.Sub() as op, right):
            other = ast.Sub() if isinstance(op, ast.Add) else ast.Add()
            if not any(
                isinstance(side, ast.JoinedStr | ast.List | ast.Tuple) for side in (left, right)
            ) and not any(
                isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (left, right)
            ):
                yield node, f"({ast.unparse(ast.BinOp(left, other, right))})"
        case ast.IfExp(test, body, orelse):
            yield node, f"({ast.unparse(ast.IfExp(test, orelse, body))})"
        case ast.comprehension(ifs=[_, *_] as ifs):
            for condition in ifs:
                yield condition, "True"
        case _:
            pass


def statement_changes(node: ast.stmt) -> Iterator[Change]:
    match node:
        case ast.Return(value) if value is not None and not (
            isinstance(value, ast.Constant) and value.value in (None, True, False)
        ):
            yield node, "return None"
        case (
            ast.Expr(ast.Call() | ast.Await()) | ast.Raise() | ast.Continue() | ast.Break() | ast.AugAssign()
        ):
            yield node, "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield node, "pass"
        case ast.If(test):
            yield test, f"(not ({ast.unparse(test)}))"
        case _:
            pass


def header(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement without the statements in its bodies, and without what runs elsewhere or never."""
    for name, value in ast.iter_fields(node):
        if name in BODIES and isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            continue
        if name in ("annotation", "returns", "decorator_list", "pattern"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield child
                yield from header(child)


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        yield node
        for name in BODIES:
            for child in getattr(node, name, []):
                yield from statements([child] if isinstance(child, ast.stmt) else child.body)


def functions(
    tree: ast.AST, prefix: str = ""
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
            yield from functions(node, f"{prefix}{node.name}.<locals>.")
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.stmt | ast.ExceptHandler):
            yield from functions(node, prefix)


def mutants_of(area: str, path: str, source: bytes) -> Iterator[Mutant]:
    lines = [0]
    for line in source.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))

    def span(node: ast.AST) -> tuple[int, int]:
        return lines[node.lineno - 1] + node.col_offset, lines[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    for function, definition in functions(ast.parse(source)):
        if function.rpartition(".")[2] in ("__repr__", "__str__"):
            continue
        seen: Counter[tuple[str, str]] = Counter()
        for statement in statements(definition.body):
            begin, finish = span(statement)
            bodies = [
                span(child)[0]
                for name in BODIES
                for child in getattr(statement, name, [])[:1]
                if hasattr(child, "lineno")
            ]
            finish = min([finish, *bodies])
            changes = [*statement_changes(statement)]
            for node in header(statement):
                changes += expression_changes(node)
            for node, text in changes:
                start, end = span(node)
                if start < begin or (end > finish and node is not statement):
                    continue
                before = " ".join(source[begin:finish].decode().split())
                after = " ".join((source[begin:start] + text.encode() + source[end:finish]).decode().split())
                if before == after:
                    continue
                nth = seen[before, after]
                seen[before, after] += 1
                yield Mutant(area, path, function, node.lineno, before, after, nth, start, end, text)  # type: ignore[attr-defined]


def everywhere(tree: Path) -> list[Mutant]:
    """All mutants of the whole product, of no area."""
    paths = sorted((tree / "src" / "toolcrib").rglob("*.py"))
    return [
        mutant for path in paths for mutant in mutants_of("", str(path.relative_to(tree)), path.read_bytes())
    ]


def all_mutants(tree: Path) -> dict[str, list[Mutant]]:
    found: dict[str, list[Mutant]] = {}
    package = tree / "src" / "toolcrib"
    for name, area in AREAS.items():
        paths = sorted({path for pattern in area.sources for path in package.glob(pattern)})
        found[name] = [
            mutant
            for path in paths
            for mutant in mutants_of(name, str(path.relative_to(tree)), path.read_bytes())
        ]
    return found


# --- which tests reach a function -------------------------------------------------------------------------------

RECORDER = '''
"""A pytest plugin: which test function enters which function of the product."""
import json, os, sys, threading
entered, reached = set(), {}
add = entered.add
def profile(frame, event, argument):
    if event == "call":
        add(frame.f_code)
def keep(name):
    source = os.environ["RECORD_SOURCE"]
    cut = len(source)
    into = reached.setdefault(name, set())
    for code in list(entered):
        if code.co_filename.startswith(source):
            into.add("src/toolcrib/" + code.co_filename[cut:] + ":" + code.co_qualname)
    entered.clear()
def pytest_runtest_logstart(nodeid, location):
    sys.setprofile(profile); threading.setprofile(profile)
def pytest_runtest_logfinish(nodeid, location):
    sys.setprofile(None); threading.setprofile(None)
    keep(nodeid.partition("[")[0])
def pytest_sessionfinish(session):
    with open(os.environ["RECORD_OUT"], "w") as out:
        json.dump({name: sorted(codes) for name, codes in reached.items()}, out)
'''


def run_pytest(
    tree: Path, arguments: list[str], timeout: float, **environment: str
) -> tuple[int | None, str]:
    """The exit code, or None when the time was up, and the end of what pytest said."""
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", *arguments]
    env = {**os.environ, "PYTHONPATH": str(tree / "src"), "CI": "true", **environment}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, cwd=tree, env=env, stdout=output, stderr=output, start_new_session=True
        )
        try:
            code: int | None = process.wait(timeout)
        except subprocess.TimeoutExpired:
            code = None
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        output.seek(0)
        return code, output.read().decode(errors="replace")


def files_of(tree: Path, area: Area) -> list[str]:
    return sorted(
        {str(path.relative_to(tree)) for pattern in area.tests for path in (tree / "tests").glob(pattern)}
    )


def record(tree: Path) -> dict[str, dict[str, list[str]]]:
    """For each area: the functions of the product, each with the test functions that enter it."""
    (tree / "mutation_recorder.py").write_text(RECORDER)
    out = tree / "recorded.json"
    reached: dict[str, dict[str, list[str]]] = {}
    by_test: dict[str, list[str]] = {}
    for file in sorted({file for area in AREAS.values() for file in files_of(tree, area)}):
        out.unlink(missing_ok=True)
        began = time.monotonic()
        code, said = run_pytest(
            tree, ["-p", "mutation_recorder", file], 900, RECORD_OUT=str(out),
            RECORD_SOURCE=str(tree / "src" / "toolcrib") + "/",
            PYTHONPATH=f"{tree / 'src'}:{tree}",
        )  # fmt: skip
        print(f"{file}: exit {code}, {time.monotonic() - began:.1f} s", flush=True)
        if code not in (0, 1):
            print(said[-2000:], flush=True)
        if out.exists():
            by_test |= json.loads(out.read_text())
    for name, area in AREAS.items():
        files = set(files_of(tree, area))
        into: dict[str, list[str]] = defaultdict(list)
        for test, codes in by_test.items():
            if test.partition("::")[0] in files:
                for code_name in codes:
                    into[code_name].append(test)
        # A test that enters few functions is about this one, and quick: it comes first.
        reached[name] = {
            code: sorted(tests, key=lambda test: len(by_test[test])) for code, tests in into.items()
        }
    return reached


# --- the run ----------------------------------------------------------------------------------------------------


def judge(tree: Path, mutant: Mutant, tests: list[str], timeout: float) -> tuple[str, str]:
    """What becomes of a mutant: killed (by the first step of tests or by the slow ones), survived, or timeout."""
    path = tree / mutant.path
    compiled = Path(importlib.util.cache_from_source(str(path)))
    source = path.read_bytes()
    try:
        compile(mutant.applied(source), mutant.path, "exec")
    except SyntaxError:
        return "no program", ""
    try:
        path.write_bytes(mutant.applied(source))
        for step in ("not slow", "slow"):
            compiled.unlink(missing_ok=True)  # two states of a file within one second look the same to Python
            code, said = run_pytest(tree, ["-x", "-m", step, *tests], timeout)
            if code is None:
                return "timeout", ""
            if code not in (0, 5):
                failed = (line for line in said.splitlines() if line.startswith(("FAILED", "ERROR")))
                return "killed" if step == "not slow" else "killed slowly", next(failed, "")[:200]
        return "survived", ""
    finally:
        path.write_bytes(source)
        compiled.unlink(missing_ok=True)


def copy_of(root: Path, tree: Path) -> None:
    shutil.copytree(
        root, tree, symlinks=True,
        ignore=shutil.ignore_patterns(".git", ".venv-*", "__pycache__", ".hypothesis", ".*_cache"),
    )  # fmt: skip
    shared = root.parent / "shared"
    if shared.exists() and not (tree.parent / "shared").exists():
        (tree.parent / "shared").symlink_to(shared.resolve())


def chosen(found: dict[str, list[Mutant]], count: int, seed: int) -> list[Mutant]:
    draw = random.Random(seed)
    sample: list[Mutant] = []
    for name, area in AREAS.items():
        sample += draw.sample(found[name], min(len(found[name]), round(count * area.share / 100)))
    return sample


def replayed(
    mutants: list[Mutant], before: list[dict[str, Any]]
) -> tuple[list[Mutant], list[dict[str, Any]]]:
    """The mutants of another result that are found here, by function and text or by a unique text; and the others."""
    by_key: dict[object, list[Mutant]] = defaultdict(list)
    by_text: dict[object, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_key[mutant.key()].append(mutant)
        by_text[mutant.before, mutant.after].append(mutant)
    again, lost = [], []
    for old in before:
        same = by_key[old["function"].rpartition(".")[2], old["before"], old["after"], old["nth"]]
        text = by_text[old["before"], old["after"]]
        if same:
            found = min(same, key=lambda mutant: mutant.function != old["function"])
            again.append(replace(found, area=old["area"]))
        elif len(text) == 1:
            again.append(replace(text[0], area=old["area"]))
        else:
            lost.append(old)
    return again, lost


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree that is measured")
    parser.add_argument("--work", type=Path, help="where its copy is kept (else a temporary folder)")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--replay", type=Path, help="a result file whose mutants are looked for again")
    parser.add_argument("--fresh", type=int, default=0, help="with --replay: so many new mutants on top")
    parser.add_argument("--timeout", type=float, default=90)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()

    work = options.work or Path(tempfile.mkdtemp(prefix="mutation-"))
    tree = work / "tree"
    if not tree.exists():
        copy_of(options.root.resolve(), tree)
    found = all_mutants(tree)
    print({name: len(mutants) for name, mutants in found.items()}, flush=True)
    if options.replay:
        before = [json.loads(line) for line in options.replay.read_text().splitlines()]
        sample, lost = replayed(everywhere(tree), before)
        print(f"{len(sample)} of {len(before)} found again, {len(lost)} not", flush=True)
        known = {mutant.place() for mutant in sample}
        sample += [m for m in chosen(found, options.fresh, options.seed) if m.place() not in known]
    else:
        sample = chosen(found, options.count, options.seed)
    map_file = work / "reached.json"
    if not map_file.exists():
        map_file.write_text(json.dumps(record(tree)))
    reached = json.loads(map_file.read_text())
    done = set()
    if options.out.exists():  # a run that was stopped goes on where it was
        rows = map(json.loads, options.out.read_text().splitlines())
        done = {(row["path"], row["start"], row["end"], row["text"]) for row in rows}
    random.Random(1).shuffle(sample)
    tally: dict[str, Counter[str]] = defaultdict(Counter)
    with options.out.open("a") as out:
        for mutant in sample:
            if mutant.place() in done:
                continue
            tests = reached[mutant.area].get(f"{mutant.path}:{mutant.function}", [])
            began = time.monotonic()
            outcome, failed = judge(tree, mutant, tests, options.timeout) if tests else ("not reached", "")
            tally[mutant.area][outcome] += 1
            row = {**asdict(mutant), "outcome": outcome, "failed": failed, "tests": len(tests),
                   "seconds": round(time.monotonic() - began, 1)}  # fmt: skip
            out.write(json.dumps(row) + "\n")
            out.flush()
    for name, outcomes in tally.items():
        programs = outcomes.total() - outcomes["no program"]
        detected = programs - outcomes["survived"] - outcomes["not reached"]
        print(f"{name}: {detected} of {programs} detected, {dict(outcomes)}")


if __name__ == "__main__":
    main()

"""The examples in docstrings do what they show."""

import doctest
import importlib
import pkgutil
from functools import cache

import toolcrib
from tests.cases import each

MODULES = [
    found.name
    for found in pkgutil.walk_packages(toolcrib.__path__, "toolcrib.")
    if not found.name.endswith("__main__")
]


@cache
def examples() -> list[doctest.DocTest]:
    """The examples of all modules; found when they are run, since each worker collects the tests."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    return [test for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples]


def test_main_doors_show_how_they_are_used() -> None:
    shown = {test.name for test in examples()}
    assert shown >= {
        "toolcrib.agent.agent.Agent",
        "toolcrib.context.Context",
        "toolcrib.function.tool",
        "toolcrib.jsonstream.JsonStream",
        "toolcrib.models.resolve.resolve_model",
        "toolcrib.repair.repair",
        "toolcrib.schema.canonical.clean",
        "toolcrib.schema.lower.to_dialect",
        "toolcrib.testing.tools.check_tool",
        "toolcrib.testing.codecs.check_codec",
        "toolcrib.tool.Tool",
        "toolcrib.toolbox.box.Toolbox",
    }


@each("example", examples, ids=lambda example: example.name)
def test_example(example: doctest.DocTest) -> None:
    failed, tried = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example)
    assert tried and not failed

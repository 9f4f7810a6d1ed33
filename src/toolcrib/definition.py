"""The compiled tool: everything that a call needs and that does not change from call to call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, get_args, get_origin

from toolcrib.errors import ToolDefinitionError
from toolcrib.facts import Facts
from toolcrib.params import Params, TypedParams, make_params
from toolcrib.spec import ToolSpec
from toolcrib.tool import HOOKS, Tool, params_type, result_type

if TYPE_CHECKING:
    from toolcrib.function import FunctionTool
    from toolcrib.signature import Parameter, Signature

Hook = Callable[..., Any]

ANY_DICT = (dict, dict[str, Any])

DOC_STYLES = (
    ("\nArgs:\n", "GOOGLE"),
    ("\nAttributes:\n", "GOOGLE"),
    ("\nParameters\n---", "NUMPYDOC"),
    ("\n:param ", "REST"),
)


class Definition:
    """A compiled tool. `start(tool, params, ctx)` begins a call; `hooks` holds what the tool overrides.

    `mode` says how to run it: "async", "thread", "inline", "async_generator" or "generator".
    """

    __slots__ = (
        "_identity",
        "_output",
        "_returns",
        "_spec",
        "description",
        "dynamic",
        "effect_for",
        "facts",
        "hooks",
        "mode",
        "optional_text",
        "params",
        "precheck",
        "quick",
        "start",
        "unavailable",
        "wants_context",
    )

    def __init__(
        self,
        facts: Facts,
        description: str,
        params: Params,
        start: Callable[[Any, Any, Any], Any],
        mode: str,
        hooks: dict[str, Hook],
        returns: Any,
        wants_context: bool,
    ) -> None:
        self.facts = facts
        self.description = description
        self.params = params
        self.start = start
        self.mode = mode
        self.hooks = hooks
        self.precheck = hooks.get("precheck")
        self.unavailable = hooks.get("unavailable")
        self.dynamic = "dynamic_description" in hooks or "dynamic_schema" in hooks
        self.effect_for = hooks.get("effect_for")
        self.wants_context = wants_context or mode in ("generator", "async_generator")
        self.optional_text = _optional_text(params.schema)
        self.quick = True  # whether its last run on a worker thread was over in no time
        self._returns = returns
        self._output: Output | None = None
        self._spec: ToolSpec | None = None
        self._identity = ""

    @property
    def output(self) -> Output:
        """How the value that the tool returns is checked and shown; worked out at the first result."""
        if self._output is None:
            self._output = Output(self._returns, self.facts.name)
        return self._output

    @property
    def identity(self) -> str:
        """What the tool is to an approval: the fingerprint of its spec."""
        if not self._identity:
            self._identity = self.spec.fingerprint()
        return self._identity

    @property
    def spec(self) -> ToolSpec:
        if self._spec is None:
            facts = self.facts
            self._spec = ToolSpec(
                name=facts.name,
                description=self.description,
                input_schema=self.params.schema,
                output_schema=self.output.schema,
                annotations=facts.annotations(),
                title=facts.title,
                category=facts.category,
                version=facts.version,
                tags=facts.tags,
                examples=facts.examples,
                deferred=facts.deferred,
                extras=facts.extras,
            )
        return self._spec


class Output:
    """A tool's declared result: its JSON Schema (None for plain text and content parts) and its check."""

    __slots__ = ("_adapter", "_known", "schema", "to_json")

    def __init__(self, returns: Any, tool: str) -> None:
        self.schema: dict[str, Any] | None = None
        self._adapter: Any = None
        self._known: type | None = None
        self.to_json: Callable[[Any], bytes] | None = None
        hint = _awaited(returns)
        if not _is_structured(hint):
            return
        from pydantic import TypeAdapter

        from toolcrib.params import modern
        from toolcrib.schema import clean

        try:
            self._adapter = TypeAdapter(modern(hint))
            self.schema = clean(self._adapter.json_schema(mode="serialization"))
        except Exception as problem:
            raise ToolDefinitionError(
                f"tool {tool!r}: its return annotation {hint!r} gives no schema: {problem}"
            ) from problem
        if hint in ANY_DICT:
            self._known = dict
        elif isinstance(hint, type) and hasattr(hint, "model_fields"):
            self._known = hint
        to_json = self._adapter.serializer.to_json
        self.to_json = functools.partial(to_json, warnings=False)

    def misfit(self, value: Any, text: str) -> str | None:
        """Why a value, whose JSON is `text`, does not fit the declared type, or None.

        A model was validated when it was made, and any dict is a dict; of anything else only its JSON proves
        what it holds.
        """
        if type(value) is self._known:
            return None
        try:
            self._adapter.validator.validate_json(text)
        except ValueError as problem:
            return str(problem)
        return None


def _optional_text(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The parameters that are not required and may be given as a string."""
    required = schema.get("required", ())
    return tuple(
        name
        for name, node in schema["properties"].items()
        if name not in required
        and isinstance(node, Mapping)
        and ("type" not in node or "string" in node["type"])
        and "" not in node.get("enum", ())
    )


def define_class(cls: type[Tool[Any, Any]]) -> Definition:
    """Compile a tool class."""
    facts = cls.facts
    kind = params_type(cls)
    start: Callable[[Any, Any, Any], Any] = _execute
    if kind is None or kind is type(None):
        params: Params = TypedParams.of_fields({}, tool=facts.name)
        start = _execute_without
    else:
        params = make_params(kind, tool=facts.name)
    doc = inspect.cleandoc(cls.__doc__) if cls.__doc__ and "__doc__" in cls.__dict__ else ""
    description = _describe(params, doc, facts)
    if not isinstance(kind, Mapping):
        _document(params, _parse_doc(getattr(kind, "__doc__", None) or "")[1])
    hooks = {name: _method(name) for name in HOOKS if getattr(cls, name) is not getattr(Tool, name)}
    return Definition(
        facts, description, params, start, _mode(cls.execute, facts), hooks, result_type(cls), True
    )


def define_function(tool: FunctionTool[..., Any], names: Mapping[str, Any] | None) -> Definition:
    """Compile a function tool, from its signature or from the `params=` of its declaration."""
    from toolcrib.signature import read_signature

    fn, facts = tool.fn, tool.facts
    signature = read_signature(fn, facts.name, names)
    doc = inspect.cleandoc(inspect.getdoc(fn) or "") if _has_own_doc(fn) else ""
    start: Callable[[Any, Any, Any], Any]
    if tool.params is not None:
        params = make_params(tool.params, tool=facts.name)
        wants = _wants_context(signature, facts.name)
        start = (lambda _, values, ctx: fn(values, ctx)) if wants else (lambda _, values, ctx: fn(values))
    else:
        params = _signature_params(signature, facts.name)
        start = signature.caller(fn)
        wants = bool(signature.contexts)
    description = _describe(params, doc, facts)
    defaults = {
        p.name: p.default
        for p in (signature.parameters if tool.params is None else ())
        if not p.required
        and not hasattr(p.default, "get_default")
        and p.default is not inspect.Parameter.empty
    }
    hooks = {name: _function_hook(name, hook, defaults) for name, hook in tool.hooks.items()}
    return Definition(facts, description, params, start, _mode(fn, facts), hooks, signature.returns, wants)


def _execute(tool: Tool[Any, Any], params: Any, ctx: Any) -> Any:
    return tool.execute(params, ctx)


def _execute_without(tool: Tool[Any, Any], params: Any, ctx: Any) -> Any:
    return tool.execute(None, ctx)


def _method(name: str) -> Hook:
    return lambda tool, *args: getattr(tool, name)(*args)


def _function_hook(name: str, hook: Any, defaults: Mapping[str, Any]) -> Hook:
    """A hook of a function tool; one that is given the params is given the defaults with them."""
    if defaults and name in ("precheck", "effect_for", "resources", "accesses", "preview"):
        return lambda tool, params: hook({**defaults, **params})
    return lambda tool, *args: hook(*args)


def _wants_context(signature: Signature, tool: str) -> bool:
    """Whether a function beside `params=` takes (params, ctx) and not (params) alone."""
    given = [p for p in signature.parameters if p.default is inspect.Parameter.empty]
    bare = len(given) == 2 and given[1].hint is Any and not signature.contexts
    if len(given) != 1 and not bare:
        names = ", ".join(p.name for p in signature.order)
        raise ToolDefinitionError(
            f"tool {tool!r}: with params= its function takes (params) or (params, ctx), got ({names})"
        )
    return bare or bool(signature.contexts)


def _mode(fn: Callable[..., Any], facts: Facts) -> str:
    while isinstance(fn, functools.partial):
        fn = fn.func
    if not (inspect.isfunction(fn) or inspect.ismethod(fn)):
        fn = type(fn).__call__
    if inspect.iscoroutinefunction(fn):
        return "async"
    if inspect.isasyncgenfunction(fn):
        return "async_generator"
    if inspect.isgeneratorfunction(fn):
        return "generator"
    return "inline" if facts.inline else "thread"


def _has_own_doc(fn: Any) -> bool:
    """Whether the docstring is the function's, not that of `functools.partial` or of a class of callables."""
    return not isinstance(fn, functools.partial) or bool(fn.func.__doc__)


def _parse_doc(doc: str) -> tuple[str, dict[str, str]]:
    """The description and the parameters of a Google, NumPy or Sphinx docstring."""
    if not doc:
        return "", {}
    if ":" not in doc and "---" not in doc:
        return doc.strip(), {}
    import docstring_parser

    # Left to itself the library parses in every style and takes the richest: thrice the time.
    style = next((style for mark, style in DOC_STYLES if mark in doc), "AUTO")
    try:
        parsed = docstring_parser.parse(doc, docstring_parser.DocstringStyle[style])
    except docstring_parser.ParseError:
        return doc.strip(), {}
    described = {p.arg_name.lstrip("*"): " ".join((p.description or "").split()) for p in parsed.params}
    words = [parsed.short_description or "", parsed.long_description or ""]
    return "\n\n".join(part.strip() for part in words if part.strip()), described


def _describe(params: Params, doc: str, facts: Facts) -> str:
    """The tool's description; the parameters that its docstring describes go into the schema."""
    description, described = _parse_doc(doc)
    _document(params, described)
    return facts.description or description


def _document(params: Params, described: Mapping[str, str]) -> None:
    """Add descriptions to parameters that have none; a schema may share parts with others, so none is changed."""
    notes: dict[str, dict[str, Any]] = {}
    for name, text in described.items():
        node = params.schema["properties"].get(name)
        if isinstance(node, dict) and text and not node.get("description"):
            notes[name] = {"description": text}
    _annotate(params, notes)


def _annotate(params: Params, notes: Mapping[str, dict[str, Any]]) -> None:
    properties = params.schema["properties"]
    added = {name: {**properties[name], **note} for name, note in notes.items() if note}
    if added:
        params.schema = {**params.schema, "properties": {**properties, **added}}


def _signature_params(signature: Signature, tool: str) -> Params:
    """Params of a plain signature."""
    from toolcrib.params import TypedParams, modern
    from toolcrib.signature import VAR_KEYWORD, VAR_POSITIONAL, is_nullable

    fields: dict[str, Any] = {}
    extras: Any = None
    for parameter in signature.parameters:
        hint = modern(parameter.hint)
        if parameter.kind is VAR_KEYWORD:
            extras = hint
            continue
        if parameter.kind is VAR_POSITIONAL:
            hint = _list_of(hint)
        # A nullable field that must be there is filled with None by the params themselves.
        absent_is_none = parameter.default is None and is_nullable(hint)
        fields[parameter.name] = (_with_field(hint, parameter), parameter.required or absent_is_none)
    params = TypedParams.of_fields(fields, tool=tool, extras=extras, reserved=signature.contexts)
    _annotate(params, {parameter.name: _note(params.schema, parameter) for parameter in signature.parameters})
    return params


def _list_of(hint: Any) -> Any:
    return list[hint]


def _with_field(hint: Any, parameter: Parameter) -> Any:
    """`x: int = Field(1, ge=1)`: what the Field says joins the type, its default the signature."""
    from typing import Annotated

    from pydantic.fields import FieldInfo

    if not isinstance(parameter.default, FieldInfo):
        return hint
    info = parameter.default
    parameter.default = inspect.Parameter.empty if info.is_required() else info
    extra = FieldInfo(
        description=info.description, examples=info.examples, json_schema_extra=info.json_schema_extra
    )
    return Annotated[(hint, *info.metadata, extra)]


def _note(schema: dict[str, Any], parameter: Parameter) -> dict[str, Any]:
    """What a TypedDict's schema cannot know: the default, and a plain text in Annotated as description."""
    from pydantic.fields import FieldInfo
    from pydantic_core import to_jsonable_python

    node = schema["properties"].get(parameter.name)
    if not isinstance(node, dict):
        return {}
    note: dict[str, Any] = {}
    if "description" not in node:
        texts = [item for item in getattr(parameter.hint, "__metadata__", ()) if isinstance(item, str)]
        if texts:
            note["description"] = " ".join(texts)
    default = parameter.default
    if isinstance(default, FieldInfo):
        default = default.get_default(call_default_factory=False)
    if default is not None and not parameter.required and default is not inspect.Parameter.empty:
        try:
            note["default"] = to_jsonable_python(default)
        except ValueError:  # a default that no JSON can show is Python's business alone
            pass
    return note


def _awaited(hint: Any) -> Any:
    """The type behind Awaitable[X], Coroutine[..., X]; what generators yield is no result of its own."""
    import collections.abc as abc

    origin = get_origin(hint)
    if origin in (abc.Awaitable, abc.Coroutine):
        return get_args(hint)[-1]
    if origin in (abc.AsyncIterator, abc.AsyncGenerator, abc.AsyncIterable, abc.Iterator, abc.Generator):
        return Any
    return hint


def _is_structured(hint: Any) -> bool:
    """Whether a result type has a schema worth telling: not text, bytes, parts, None or anything."""
    from typing import TypeVar

    from toolcrib.content import Json, Media, Text
    from toolcrib.result import ToolResult

    if hint in (Any, str, bytes, None, type(None), object, inspect.Parameter.empty) or isinstance(
        hint, TypeVar
    ):
        return False
    if isinstance(hint, type) and issubclass(hint, ToolResult | Text | Json | Media | str | bytes):
        return False
    arguments = [item for item in get_args(hint) if item is not type(None)]
    if arguments and get_origin(hint) in (list, tuple, *_unions()):
        return all(item is ... or _is_structured(item) for item in arguments) or (
            get_origin(hint) in (list, tuple) and all(item in (str, ...) for item in arguments)
        )
    return True


def _unions() -> tuple[Any, ...]:
    from types import UnionType
    from typing import Union

    return (Union, UnionType)

"""Turns content blocks of the Model Context Protocol into parts of a result, and results into content blocks.

Blocks are read in their wire form, as a server may have written them: nothing here trusts a type. What a model reads of
a block:

| block                       | part                                                                     |
| --------------------------- | ------------------------------------------------------------------------ |
| text                        | Text                                                                     |
| image, audio                | Image, Audio; a note in their place if they are too large or no base64   |
| resource with text          | Text, after a line with its URI                                          |
| resource with a blob        | Image, Audio or File (PDF); text is decoded; a note for anything else    |
| resource_link               | Text: its name, URI, type, size and description                          |
| anything else               | Text: a note that names its type                                         |

A block whose audience is the user alone is for the person: the model reads a note that there was one.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from typing import Any

from toolcrib.content import Audio, File, Image, Json, Media, Part, Text
from toolcrib.dataclass import dataclass, replace
from toolcrib.errors import ErrorCode
from toolcrib.result import ToolResult
from toolcrib.schema.keywords import types_of
from toolcrib.visible import counted, on_one_line

__all__ = [
    "APP_MIME_TYPE",
    "OWN",
    "Received",
    "as_wire",
    "blocks_of",
    "call_result",
    "is_wrapped",
    "part_of",
    "received",
]

OWN = "mcp"  # the name under which parts and results keep what only this protocol knows
APP_MIME_TYPE = "text/html;profile=mcp-app"
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")  # what every provider takes
MAX_MEDIA = 12_000_000  # characters of base64 of one picture, sound or document
MAX_ALL_MEDIA = 32_000_000  # of all of one result
MAX_BLOCKS = 1_000
MAX_WORDS = 300  # characters of a name, a URI or a type that a note repeats
MAX_META = 20_000  # characters of JSON of a block's or a result's own data that is kept
LEAVES = 200  # values of structured content that are looked for in the text

EMPTY = "The tool gave no content."
FOR_PERSON = "[The tool gave {} for the user alone: {} shown to them, not to you.]"
LEFT_OUT = "[{} more content blocks are left out.]"


@dataclass(frozen=True, slots=True)
class Received:
    """A result as the model is told it, and the parts that are for the person alone."""

    result: ToolResult
    for_person: tuple[Part, ...] = ()


def as_wire(given: Any) -> Any:
    """An object of the SDK as JSON data in the form of the wire; anything else as it is."""
    dump = getattr(given, "model_dump", None)
    return given if dump is None else dump(mode="json", by_alias=True, exclude_none=True)


# -- what a server sent


def received(raw: Any, *, output_schema: bool = False, budget: int = 50_000) -> Received:
    """The result of a remote call.

    The model is told the text or the structured content, never both. Structured content is chosen where it stands
    alone; where the text is the same data as JSON; and where the tool has an output schema and the text does not tell
    the data.
    `ToolResult.structured` has it in any case.

    Args:
        raw: A `CallToolResult` of the SDK, or the same as JSON data.
        output_schema: Whether the tool declares one.
        budget: Bytes of text that a model will be shown. If there is more, blocks of low priority are left out first.
    """
    data = as_wire(raw)
    data = data if isinstance(data, Mapping) else {}
    given = data.get("content")
    blocks: list[Any] = list(given) if isinstance(given, list) else []
    parts: list[Part] = []
    for_person: list[Part] = []
    media = 0
    for block in blocks[:MAX_BLOCKS]:
        part = part_of(block)
        if isinstance(part, Media):
            media += len(part.data)
            if media > MAX_ALL_MEDIA:
                part = _too_large(part)
        (for_person if audience(block) == {"user"} else parts).append(part)
    if len(blocks) > MAX_BLOCKS:
        parts.append(Text(LEFT_OUT.format(f"{len(blocks) - MAX_BLOCKS:,}")))
    parts = _by_priority(parts, budget)
    structured = data.get("structuredContent")
    is_data = False
    if structured is not None and not data.get("isError"):
        texts = [part for part in parts if isinstance(part, Text) and not _is_resource(part)]
        said = "\n".join(part.text for part in texts)
        if said and said == _unwrapped(structured):
            pass  # a text is plainer than the same text in quotes, and can be cut
        elif not said or _is_same_data(texts, structured) or (output_schema and not _tells(said, structured)):
            rest = [part for part in parts if part not in texts]
            parts, is_data = [Text(_compact(structured)), *rest], True
    if for_person:
        parts.append(Text(_note_for_person(for_person)))
    result = ToolResult(
        tuple(parts) or (Text(EMPTY),),
        is_error=bool(data.get("isError")),
        code=ErrorCode.TOOL_ERROR if data.get("isError") else None,
        structured=structured,
        extras=_extras(data, for_person),
        is_data=is_data and all(isinstance(part, Text) for part in parts[:1]) and len(parts) == 1,
    )
    return Received(result, tuple(for_person))


def part_of(block: Any) -> Part:
    """The part of one content block. Raises nothing: what cannot be read becomes a note that says so."""
    block = as_wire(block)
    kind = block.get("type") if isinstance(block, Mapping) else None
    reader = READERS.get(kind) if isinstance(kind, str) else None
    part = None if reader is None else reader(block)
    if part is None:
        what = on_one_line(str(kind), 60) if isinstance(kind, str) else "without a type"
        return Text(f"[content of a kind that cannot be shown: {what}]")
    if notes := _kept(block.get("annotations")):
        own = {**part.extras.get(OWN, {}), "annotations": notes}
        return replace(part, extras={**part.extras, OWN: own})
    return part


def audience(block: Any) -> set[str]:
    """Whom a block is for, as its annotations say: "user", "assistant"; empty where they say nothing."""
    notes = as_wire(block).get("annotations") if isinstance(as_wire(block), Mapping) else None
    roles = notes.get("audience") if isinstance(notes, Mapping) else None
    return {role for role in roles if isinstance(role, str)} if isinstance(roles, list) else set()


def _text(block: Mapping[str, Any]) -> Part | None:
    text = block.get("text")
    return Text(text) if isinstance(text, str) else None


def _image(block: Mapping[str, Any]) -> Part | None:
    return _media(Image, block.get("data"), block.get("mimeType"), "image")


def _audio(block: Mapping[str, Any]) -> Part | None:
    return _media(Audio, block.get("data"), block.get("mimeType"), "audio")


def _media(kind: type[Media], data: Any, media_type: Any, family: str, name: str = "") -> Part | None:
    if not isinstance(data, str) or not data:
        return None
    known = isinstance(media_type, str) and media_type.startswith(f"{family}/")
    said = on_one_line(media_type, 100) if known else ""
    if len(data) > MAX_MEDIA:
        return _too_large(kind(data, "", said, name))
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return Text(f"[{kind.kind} that cannot be read: its data is no base64]")
    if kind is Image:  # a picture that a provider refuses would end the conversation, not this call
        told, said = said, Image(data[:64]).media_type
        if said not in PICTURES:
            what = " ".join(word for word in ("image", told) if word)
            return Text(f"[{what} that cannot be shown: it is no PNG, JPEG, GIF or WebP]")
    read: Any = kind(data, "", said, name)
    return read  # type: ignore[no-any-return]


def _too_large(part: Media) -> Text:
    size = len(part.data) * 3 // 4
    return Text(f"[{part.kind} {part.media_type} left out: {size:,} bytes are too much to show]")


def _resource(block: Mapping[str, Any]) -> Part | None:
    resource = block.get("resource")
    if not isinstance(resource, Mapping):
        return None
    uri, media_type = _words(resource.get("uri")), _words(resource.get("mimeType"))
    text, blob = resource.get("text"), resource.get("blob")
    if text is None:
        text = _text_of(blob, media_type)
    own = {
        "resource": _kept({name: value for name, value in resource.items() if name not in ("text", "blob")})
    }
    if isinstance(text, str):
        return Text(f"[resource {uri}]\n{text}", {OWN: own})
    if not isinstance(blob, str):
        return None
    family = media_type.partition("/")[0]
    part = _blob(blob, family, media_type, uri)
    if part is None:
        size = len(blob) * 3 // 4
        return Text(
            f"[resource {uri}: {size:,} bytes of {media_type or 'unknown type'}, which cannot be shown]"
        )
    if isinstance(part, Text):
        return Text(f"[resource {uri}] {part.text}", part.extras)
    return replace(part, extras={OWN: own})


def _blob(blob: str, family: str, media_type: str, uri: str) -> Part | None:
    if family in ("image", "audio"):
        return _media(Image if family == "image" else Audio, blob, media_type, family, uri)
    if media_type == "application/pdf":
        return _media(File, blob, media_type, "application", uri)
    return None


def _text_of(blob: Any, media_type: str) -> str | None:
    """The text that the bytes of a resource are; None if they are none."""
    may_be_text = media_type.startswith("text/") or media_type.endswith(("json", "xml", "yaml"))
    if not may_be_text or not isinstance(blob, str):
        return None
    try:
        return base64.b64decode(blob, validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def _resource_link(block: Mapping[str, Any]) -> Part | None:
    uri = _words(block.get("uri"))
    if not uri:
        return None
    name = _words(block.get("title")) or _words(block.get("name"))
    size = block.get("size")
    facts = [_words(block.get("mimeType")), f"{size:,} bytes" if type(size) is int and size >= 0 else ""]
    told = ", ".join(fact for fact in facts if fact)
    about = on_one_line(str(block.get("description") or ""), 2_000)
    text = f"[link to the resource {uri}" + (f' "{name}"' if name else "") + (f" ({told})" if told else "")
    return Text(f"{text}: {about}]" if about else f"{text}]", {OWN: {"block": _kept(block)}})


READERS = {
    "text": _text,
    "image": _image,
    "audio": _audio,
    "resource": _resource,
    "resource_link": _resource_link,
}


def _words(given: Any) -> str:
    return on_one_line(given, MAX_WORDS) if isinstance(given, str) else ""


def _kept(given: Any) -> dict[str, Any]:
    """A server's own data that is kept beside a part: as it is, if it is not too much."""
    if not isinstance(given, Mapping) or not given:
        return {}
    return dict(given) if len(json.dumps(given, default=str)) <= MAX_META else {}


def _is_resource(part: Text) -> bool:
    return bool(part.extras.get(OWN, {}).keys() & {"resource", "block"})


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _is_same_data(texts: list[Text], structured: Any) -> bool:
    """Whether texts are the same data as structured content: as JSON, or as the items of a wrapped list."""
    wrapped = _unwrapped(structured)
    whole = "\n".join(part.text for part in texts)
    read = _parsed(whole)
    if read is not None and read in (structured, wrapped):
        return True
    if isinstance(wrapped, list) and len(texts) == len(wrapped) and texts:
        return all(
            part.text == item or _parsed(part.text) == item for part, item in zip(texts, wrapped, strict=True)
        )
    return False


def _unwrapped(structured: Any) -> Any:
    """The value itself of `{"result": value}`, in which servers put what is no object."""
    wraps = isinstance(structured, dict) and structured.keys() == {"result"}
    return structured["result"] if wraps else structured


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _tells(text: str, structured: Any) -> bool:
    """Whether most values of structured content occur in a text, so that it tells the data in other words."""
    leaves: list[str] = []
    waiting: list[Any] = [structured]
    while waiting and len(leaves) < LEAVES:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, str) and value.strip():
            leaves.append(value.strip())
        elif isinstance(value, int | float) and not isinstance(value, bool):
            leaves.append(str(value))
    told = sum(leaf in text for leaf in leaves)
    return 2 * told >= len(leaves)


def _by_priority(parts: list[Part], budget: int) -> list[Part]:
    """The parts without texts of low priority, the lowest first, where all together are more than is shown."""
    sizes = {id(part): len(part.text) for part in parts if isinstance(part, Text)}
    over = sum(sizes.values()) - budget
    low = sorted((p for p in parts if isinstance(p, Text) and priority(p) < 0.5), key=priority)
    dropped: set[int] = set()
    for part in low:
        if over <= 0:
            break
        over -= sizes[id(part)]
        dropped.add(id(part))
    if not dropped:
        return parts
    kept = [part for part in parts if id(part) not in dropped]
    return [*kept, Text(f"[{len(dropped)} content blocks of low priority are left out.]")]


def priority(part: Part) -> float:
    """How important a part is, as its annotations say: from 0 to 1; 1 where they say nothing."""
    given = part.extras.get(OWN, {}).get("annotations", {}).get("priority")
    known = isinstance(given, int | float) and not isinstance(given, bool)
    return min(max(float(given), 0.0), 1.0) if known else 1.0


def _note_for_person(parts: list[Part]) -> str:
    what = ", ".join(sorted({part.kind for part in parts}))
    return FOR_PERSON.format(
        f"{counted(len(parts), 'part')} of its result ({what})", "it was" if len(parts) == 1 else "they were"
    )


def _extras(data: Mapping[str, Any], for_person: list[Part]) -> dict[str, Any] | None:
    """What is kept beside a result: its own data (with the user interface of MCP Apps), and the person's parts."""
    own: dict[str, Any] = {}
    if meta := _kept(data.get("_meta")):
        own["meta"] = meta
    if for_person:
        own["for_person"] = blocks_of(for_person)
    return {OWN: own} if own else None


# -- what a server of ours sends


def call_result(
    result: ToolResult, *, any_json: bool = True, schema: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A result as the JSON data of a `CallToolResult`.

    A result without the structured content that its schema promises is an error: clients refuse it otherwise, and no
    model reads its text.

    Args:
        any_json: Structured content may be any JSON value, as since revision 2026-07-28. Before, it is an object.
        schema: The output schema of the tool.
    """
    own = (result.extras or {}).get(OWN, {})
    blocks = blocks_of(result.parts)
    hidden = [{**block, "annotations": {**block.get("annotations", {}), "audience": ["user"]}}
              for block in own.get("for_person", ())]  # fmt: skip
    data: dict[str, Any] = {"content": [*blocks, *hidden], "isError": result.is_error}
    structured = result.structured
    is_null = schema is not None and result.is_data and result.text == "null"
    if result.is_error:
        pass
    elif structured is not None or is_null:
        is_object = isinstance(structured, dict)
        wrapped = is_wrapped(schema, any_json=any_json) if schema is not None else not (any_json or is_object)
        data["structuredContent"] = {"result": structured} if wrapped else structured
    elif schema is not None:
        data["isError"] = True
    if "meta" in own:
        data["_meta"] = own["meta"]
    return data


def is_wrapped(schema: Mapping[str, Any], *, any_json: bool) -> bool:
    """Whether structured content of an output schema is sent as `{"result": value}`: what may be no object or null.

    With `any_json`, what may be null: most clients take null for structured content that is missing.
    """
    return not _refuses_null(schema, schema, ()) if any_json else schema.get("type") != "object"


def _refuses_null(node: Any, schema: Mapping[str, Any], through: tuple[str, ...]) -> bool:
    """Whether null certainly does not fit a node of a canonical schema that was reached `through` some references."""
    if not isinstance(node, Mapping):
        return False
    ref, types = node.get("$ref"), types_of(node)
    if isinstance(ref, str) and ref not in through:
        target = schema.get("$defs", {}).get(ref.removeprefix("#/$defs/"))
        if _refuses_null(target, schema, (*through, ref)):
            return True
    if (types and "null" not in types) or None not in node.get("enum", [None]):
        return True
    refused = [_refuses_null(part, schema, through) for part in node.get("anyOf", ())]
    return (
        (bool(refused) and all(refused))
        or any(_refuses_null(part, schema, through) for part in node.get("allOf", ()))
        or node.get("const") is not None
    )


def blocks_of(parts: Iterable[Part]) -> list[dict[str, Any]]:
    """Parts as content blocks, in their wire form."""
    return [_block_of(part) for part in parts]


def _block_of(part: Part) -> dict[str, Any]:
    own = part.extras.get(OWN, {}) if isinstance(part.extras, dict) else {}
    block = _plain_block(part, own)
    if "annotations" in own and "annotations" not in block:
        block["annotations"] = own["annotations"]
    return block


def _plain_block(part: Part, own: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(part, Json):
        return {"type": "text", "text": part.as_text()}
    if isinstance(part, Text):
        if "block" in own:
            return dict(own["block"])
        if "resource" in own:
            head, _, text = part.text.partition("\n")
            text = text if head.startswith("[resource ") else part.text
            return {"type": "resource", "resource": {"uri": "", **own["resource"], "text": text}}
        return {"type": "text", "text": part.text}
    if not part.data:
        name = part.name or part.url
        return {"type": "resource_link", "uri": part.url, "name": name, **_typed(part)}
    if "resource" in own or isinstance(part, File):
        uri = f"attachment:///{part.name or 'file'}"
        return {
            "type": "resource",
            "resource": {"uri": uri, **_typed(part), **own.get("resource", {}), "blob": part.data},
        }
    fallback = "image/png" if isinstance(part, Image) else "audio/wav"
    return {"type": part.kind, "data": part.data, "mimeType": part.media_type or fallback}


def _typed(part: Media) -> dict[str, Any]:
    return {"mimeType": part.media_type} if part.media_type else {}

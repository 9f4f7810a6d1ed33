"""All text formats, a row each, and which of them a model writes.

To add one, add a `Form` to `FORMS`: its name, patterns of the models that write it, and the template of a call.
The order counts: a model's name is held against the patterns from top to bottom, the more particular first.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any, Final

from toolcrib.codecs.text.declarations import (
    bare_json_list,
    bare_json_tools,
    json_list,
    markdown_tools,
    schema_sections,
    typescript_namespace,
)
from toolcrib.codecs.text.delimiters import Delimiters, delimiters_of
from toolcrib.codecs.text.form import Form, NamedIds
from toolcrib.codecs.text.grammars import (
    elements,
    functionary,
    harmony,
    merged_json,
    python_calls,
    tolerant,
    tool_tags,
)
from toolcrib.codecs.text.grammars.gemma import FUNCTION_GEMMA, GEMMA_4
from toolcrib.dataclass import replace
from toolcrib.guided.merged import merged_calls

__all__ = ["FALLBACK", "FORMS", "format_for", "format_named", "formats"]

FALLBACK: Final = "tool_call"  # for models that no format names
NOT_HERMES: Final = r"^(?!.*hermes).*"  # a model that is tuned to a form of its own

AFTER_YOUR_CALLS: Final = "After your calls, stop: the results come with the next message."
STRINGS_AS_THEY_ARE: Final = (
    "Write a string as it is, without quotes or escapes, on several lines if need be; "
    "any other value as JSON."
)
STRINGS_MARKED: Final = (
    'Write a string as it is with string="true", any other value as JSON with string="false"; '
    "never escape anything."
)
COHERE_WORDS: Final = (
    *("<|START_TEXT|>", "<|END_TEXT|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    *("<|START_OF_TURN_TOKEN|>", "<|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>"),
)
PLAIN_RESULT: Final = "<tool_response>\n{text}\n</tool_response>"
TOOL_RESULT: Final = '<tool_result name="{name}"{failed}>\n{text}\n</tool_result>'


def tagged(name: str, *models: str, rule: str = STRINGS_AS_THEY_ARE, **fields: Any) -> Form:
    """A format with a tag for each parameter; `rule` says how values are written."""
    each = fields.get("calls", "{calls}") == "{calls}"
    several = "repeat the whole form" if each else "repeat what stands inside the outermost tags"
    common: dict[str, Any] = {
        "declaration": "# Tools\n\nYou may call these functions:\n<tools>\n{tools}\n</tools>",
        "instruction": "To call a function, write exactly:",
        "rules": f"{rule} For several calls {several}. {AFTER_YOUR_CALLS}",
        "result": PLAIN_RESULT,
    }
    return Form(name=name, models=models, **{**common, **fields})


def qwen3_coder(name: str, *models: str) -> Form:
    """The format of Qwen3-Coder, which other families took over."""
    return tagged(
        name,
        *models,
        call="<tool_call>\n<function={name}>\n{arguments}</function>\n</tool_call>",
        parameter="<parameter={name}>\n{value}\n</parameter>\n",
        section_optional=True,
        trim="lines",
    )


def dsml(name: str, model: str, section: str, result: str, space: str = "") -> Form:
    """A format of DeepSeek since V3.2: tags with the mark DSML, whose bars models write in several ways."""
    mark = f"｜DSML｜{space}"
    return tagged(
        name,
        model,
        calls=f"<{mark}{section}>\n{{calls}}\n</{mark}{section}>",
        call=f'<{mark}invoke name="{{name}}">\n{{arguments}}</{mark}invoke>',
        parameter=f'<{mark}parameter name="{{name}}" string="{{string}}">{{value}}</{mark}parameter>\n',
        also_spelled={"｜DSML｜": ("|DSML|", "｜｜DSML｜｜", "||DSML||")},
        rule=STRINGS_MARKED,
        thinking=("<think>", "</think>"),
        result=result,
    )


def deepseek(name: str, *models: str, call: str, between: str) -> Form:
    """A format of DeepSeek up to V3.1: special tokens, of which servers lose the mark ▁."""
    calls = "<｜tool▁calls▁begin｜>{calls}<｜tool▁calls▁end｜>"
    begin, end = calls.split("{calls}")
    return Form(
        name=name,
        models=models,
        calls=calls,
        call=f"<｜tool▁call▁begin｜>{call}<｜tool▁call▁end｜>",
        between=between,
        other_begins=("<｜tool_calls_begin｜>",),
        other_ends=("<｜tool_calls_end｜>",),
        special_tokens=True,
        drops_text_between_calls=True,
        result="<｜tool▁output▁begin｜>{text}<｜tool▁output▁end｜>",
        declare=schema_sections,
        declaration="## Tools\nYou have access to these tools:\n\n{tools}",
        rules=(
            "The arguments are one JSON object. For several calls repeat what stands between "
            f"{begin} and {end}. {AFTER_YOUR_CALLS}"
        ),
    )


def glm(name: str, model: str, line: str) -> Form:
    """A format of GLM, which writes the name behind the tag and a pair of elements for each parameter."""
    return tagged(
        name,
        model,
        call=f"<tool_call>{{name}}{line}{{arguments}}</tool_call>",
        parameter=f"<arg_key>{{name}}</arg_key>{line}<arg_value>{{value}}</arg_value>{line}",
        between=line,
        untyped_json=True,
        thinking=("<think>", "</think>\n"),
    )


def python(name: str, *models: str, **fields: Any) -> Form:
    """A format whose calls are Python."""
    common: dict[str, Any] = {
        "calls": "[{calls}]",
        "call": "{call}",
        "between": ", ",
        "read": python_calls.read,
        "write_call": python_calls.write_call,
        "declare": bare_json_list,
        "declaration": "# Tools\n\nYou may call these tools:\n{tools}",
        "instruction": (
            "To call tools, write the calls in Python's syntax, with named arguments that are literals, and "
            "nothing else:"
        ),
        "rules": "The results come in <tool_response> with the next message.",
    }
    form = Form(name=name, models=models, **{**common, **fields})
    example = form.between.join(("name(parameter=value)", "name2(parameter=value)"))
    return replace(form, example=form.calls.replace("{calls}", example))


def mistral(
    name: str, models: str, *, calls: str, call: str, example: str, several: str, **fields: Any
) -> Form:
    """A format of Mistral, whose models write calls in either form."""
    either = delimiters_of("{calls}", "[TOOL_CALLS]{name}[ARGS]{arguments}", (), ("</s>",), ())
    return Form(
        name=name,
        models=(f"{NOT_HERMES}({models})",),
        calls=calls,
        call=call,
        own_delimiters=either,
        declare=json_list,
        declaration="[AVAILABLE_TOOLS]{tools}[/AVAILABLE_TOOLS]",
        example=example,
        rules=f"{several}\nAfter your calls, stop: the results come as [TOOL_RESULTS] with the next message.",
        result='[TOOL_RESULTS]{"call_id": "{id}", "name": "{name}"{failed}}\n{text}[/TOOL_RESULTS]',
        error_marks=("", ', "error": true'),
        **fields,
    )


def in_tags(name: str, *models: str, tag: str = "tool_call", **fields: Any) -> Form:
    """A format with each call as a JSON object in a tag, on a line of its own."""
    return Form(name=name, models=models, call=f"<{tag}>\n{{call}}\n</{tag}>", **fields)


def listed(name: str, *models: str, calls: str, **fields: Any) -> Form:
    """A format with the calls of a turn in one JSON list."""
    return Form(name=name, models=models, calls=calls, call="{call}", between=", ", **fields)


FORMS: Final[tuple[Form, ...]] = (
    qwen3_coder("qwen3_coder_xml", r"qwen-?3-?coder", r"qwen-?3-?next-?coder", r"qwen-?3\.[5-9]"),
    qwen3_coder("nemotron3", r"nemotron-?(?:nano-?|super-?|ultra-?)?3", r"nemotron-3"),
    qwen3_coder("step3p5", r"step-?3[.p-]?[5-9]"),
    tagged(
        "seed_oss",
        r"seed-?oss",
        r"doubao",
        call="<seed:tool_call>\n<function={name}>\n{arguments}</function>\n</seed:tool_call>",
        parameter="<parameter={name}>{value}</parameter>\n",
        section_optional=True,
        trim="lines",
    ),
    tagged(
        "step3",
        r"step-?3\b",
        calls="<｜tool_calls_begin｜>{calls}<｜tool_calls_end｜>",
        call=(
            '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="{name}">{arguments}</steptml:invoke>'
            "<｜tool_call_end｜>"
        ),
        parameter='<steptml:parameter name="{name}">{value}</steptml:parameter>',
        between="",
        drops_text_between_calls=True,
        trim="wrapped",
        also_reserved=("<｜tool_call_begin｜>", "<｜tool_call_end｜>", "<｜tool_sep｜>"),
    ),
    dsml(
        "deepseek_v4.1_dsml",
        r"deepseek.*v-?4\.[1-9]",
        "calls",
        "<tool_result>{text}</tool_result>",
        space=" ",
    ),
    dsml("deepseek_v4_dsml", r"deepseek.*v-?[4-9]", "tool_calls", "<tool_result>{text}</tool_result>"),
    dsml(
        "deepseek_v3.2_dsml",
        r"deepseek.*v-?3\.[2-9]",
        "function_calls",
        "<function_results>\n<result>{text}</result>\n</function_results>",
    ),
    deepseek(
        "deepseek_v3.1",
        r"deepseek.*v-?3\.1",
        r"deepseek.*terminus",
        call="{name}<｜tool▁sep｜>{arguments}",
        between="",
    ),
    deepseek(
        "deepseek_r1",
        r"deepseek.*r-?1",
        call="function<｜tool▁sep｜>{name}\n```json\n{arguments}\n```",
        between="\n",
    ),
    deepseek(
        "deepseek_v3",
        r"deepseek",
        call="function<｜tool▁sep｜>{name}\n```json\n{arguments}\n```",
        between="\n",
    ),
    Form(
        name="kimi_k2",
        models=(r"kimi", r"moonshot"),
        calls="<|tool_calls_section_begin|>{calls}<|tool_calls_section_end|>",
        call="<|tool_call_begin|>{id}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>",
        between="",
        ids=NamedIds("functions."),
        other_begins=("<|tool_call_section_begin|>",),
        other_ends=("<|tool_call_section_end|>",),
        special_tokens=True,
        drops_text_between_calls=True,
        calls_end_thinking=True,
        thinking=("<think>", "</think>"),
        result="## Return of {id}\n{text}",
        declare=json_list,
        declaration="# Tools\n\n{tools}",
        rules=(
            "The number at the end of the id counts all calls of the conversation from 0; the arguments are one "
            f"JSON object. Several calls stand in one section, one after the other. {AFTER_YOUR_CALLS}"
        ),
    ),
    glm("glm47", r"glm-?(?:4\.[7-9]|[5-9])", ""),
    glm("glm4_moe", r"glm-?4\.[56]", "\n"),
    tagged(
        "hunyuan_v3",
        r"hunyuan-?(?:v3|3)",
        r"\bhy-?v?[34]",
        calls="<tool_calls>\n{calls}\n</tool_calls>",
        call="<tool_call>{name}<tool_sep>\n{arguments}</tool_call>",
        parameter="<arg_key>{name}</arg_key>\n<arg_value>{value}</arg_value>\n",
        thinking=("<think>", "</think>\n"),
    ),
    tagged(
        "minimax_m3",
        r"minimax-?m-?[3-9]",
        calls=f"{elements.MARK}<tool_call>\n{{calls}}\n{elements.MARK}</tool_call>",
        call=f'{elements.MARK}<invoke name="{{name}}">\n{{arguments}}{elements.MARK}</invoke>',
        parameter=f"{elements.MARK}<{{name}}>{{value}}{elements.MARK}</{{name}}>\n",
        own_delimiters=elements.DELIMITERS,
        also_reserved=(elements.MARK,),
        write_parameter=elements.write_parameter,
        read=elements.read,
        section_optional=True,
        trim="wrapped",
        thinking=("<think>\n", "\n</think>\n\n"),
        result="<response>{text}</response>",
        rule=(
            f"Each tag begins with {elements.MARK}. A string is written as it is, an object as elements with the "
            "names of its keys, a list as `item` elements, any other value as JSON."
        ),
    ),
    in_tags("minimax_m1", r"minimax-?m1", r"minimax-?text", tag="tool_calls"),
    tagged(
        "minimax_m2",
        r"minimax",
        calls="<minimax:tool_call>\n{calls}\n</minimax:tool_call>",
        call='<invoke name="{name}">\n{arguments}</invoke>',
        parameter='<parameter name="{name}">{value}</parameter>\n',
        trim="wrapped",
        thinking=("<think>\n", "\n</think>\n\n"),
        result="<response>{text}</response>",
    ),
    FUNCTION_GEMMA,
    GEMMA_4,
    Form(
        name="harmony",
        models=(r"gpt-?oss",),
        call=(
            "<|start|>assistant<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>"
            "{arguments}<|call|>"
        ),
        between="",
        read=harmony.read,
        also_reserved=harmony.WORDS,
        thinking=("<|channel|>analysis<|message|>", "<|end|>"),
        result="<|start|>functions.{name} to=assistant<|channel|>commentary<|message|>{text}<|end|>",
        declare=typescript_namespace,
        declaration="# Tools\n\n## functions\n\n{tools}",
        instruction="Calls to these tools must go to the commentary channel, each as:",
        example=(
            '<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{"PARAMETER": "VALUE"}<|call|>'
        ),
        rules=f"The message is one JSON object. {AFTER_YOUR_CALLS}",
    ),
    tagged(
        "invoke",
        r"claude",
        calls="<function_calls>\n{calls}\n</function_calls>",
        call='<invoke name="{name}">\n{arguments}</invoke>',
        parameter='<parameter name="{name}">{value}</parameter>\n',
        section_optional=True,
        result='<function_results name="{name}">\n{text}\n</function_results>',
    ),
    Form(
        name="tool_call",
        call="<tool_call>{call}</tool_call>",
        read=tolerant.read,
        also_reserved=tolerant.RESERVED,
        result=TOOL_RESULT,
        declare=bare_json_tools,
        declaration="# Tools\n\nYou may call these tools:\n{tools}",
        instruction="To call one, write JSON in a tag, outside of code and of your thinking, one tag for each call:",
        rules="Then stop; the results come in the next message.",
    ),
    Form(
        name="schoober",
        call="{call}",
        read=tool_tags.read,
        write_call=tool_tags.write_call,
        tools_are_tags=True,
        result=TOOL_RESULT,
        declare=markdown_tools,
        declaration="# Tools\n\n{tools}",
        instruction=(
            "To call a tool, write its name as a tag and each parameter as a tag in it, outside of code and of "
            "your thinking:"
        ),
        example="<TOOL><PARAMETER>value</PARAMETER></TOOL>",
        rules=(
            "A value that holds tags goes into <![CDATA[…]]>; one that is no text is JSON. "
            "Then stop; the results come in the next message."
        ),
    ),
    python(
        "llama4_pythonic",
        r"llama-?4",
        other_begins=("<|python_start|>",),
        other_ends=("<|python_end|>",),
        unmarked=True,
    ),
    python("olmo3_pythonic", r"olmo-?3", calls="<function_calls>{calls}</function_calls>", between="\n"),
    python("lfm2", r"lfm-?2", calls="<|tool_call_start|>[{calls}]<|tool_call_end|>", unmarked=True),
    python(
        "pythonic",
        r"^(?!.*hermes).*llama-?3\.2",
        r"toolace",
        r"watt-tool",
        other_begins=("<|python_start|>", "<|python_tag|>"),
        other_ends=("<|python_end|>",),
        unmarked=True,
    ),
    Form(
        name="functionary_v3.1",
        models=(r"functionary.*v3\.1",),
        call="<function={name}>{arguments}</function>",
        ignored_words=("<|eom_id|>", "<|eot_id|>"),
        declare=bare_json_tools,
    ),
    Form(
        name="functionary_v3.2",
        models=(r"functionary",),
        call=">>>{name}\n{arguments}",
        ignored_words=("<|eot_id|>",),
        read=functionary.read,
        declare=bare_json_tools,
        example='>>>NAME\n{"PARAMETER": "VALUE"}\nWhat is meant for the user begins with:\n>>>all',
    ),
    mistral(
        "mistral_pre_v11",
        "mistral-7b|mixtral|mistral-nemo|mistral-large.*2407|ministral.*2410",
        calls="[TOOL_CALLS][{calls}]",
        call="{call}",
        between=", ",
        keys=("name", "arguments", "id"),
        example='[TOOL_CALLS][{"name": "NAME", "arguments": {"PARAMETER": "VALUE"}}]',
        several="Several calls stand in one list.",
    ),
    mistral(
        "mistral",
        "mistral|ministral|magistral|devstral|codestral|pixtral",
        calls="{calls}",
        call="[TOOL_CALLS]{name}[ARGS]{arguments}",
        between="",
        id_mark="[CALL_ID]",
        example='[TOOL_CALLS]NAME[ARGS]{"PARAMETER": "VALUE"}',
        several="Several calls stand one after the other.",
    ),
    # What a family is tuned for goes before what it was made from.
    in_tags("hermes", r"hermes", r"qwen-?2", r"qwen-?3", r"qwq", r"smollm3"),
    listed(
        "xlam",
        r"xlam",
        calls="[{calls}]",
        other_begins=("<tool_call>", "[TOOL_CALLS]"),
        other_ends=("</tool_call>", "[/TOOL_CALLS]"),
        unmarked=True,
        fenced=True,
    ),
    listed(
        "nemotron_v2", r"nemotron", calls="<TOOLCALL>[{calls}]</TOOLCALL>", ignored_words=("<SPECIAL_12>",)
    ),
    listed(
        "firefunction_v2",
        r"firefunction",
        calls=" functools[{calls}]",
        other_begins=(" functools[",),  # so that quotes before it are seen
    ),
    in_tags("granite4", r"granite-?4"),
    Form(
        name="granite_20b_fc",
        models=(r"granite-20b.*function",),
        call="<function_call> {call}",
        other_ends=("</function_call>", "<|endoftext|>"),
    ),
    listed(
        "granite",
        r"granite",
        calls="<|tool_call|>[{calls}]",
        other_begins=("<tool_call>",),
        other_ends=("</tool_call>", "<|end_of_text|>"),
        unmarked=True,
    ),
    Form(
        name="internlm2",
        models=(r"internlm",),
        call="<|action_start|><|plugin|>{call}<|action_end|>",
        keys=("name", "parameters"),
        other_begins=("<|action_start|> <|plugin|>",),
    ),
    listed("jamba", r"jamba", calls="<tool_calls>[{calls}]</tool_calls>"),
    listed(
        "hunyuan_a13b",
        r"hunyuan",
        calls="<tool_calls>[{calls}]</tool_calls>",
        ignored_words=("<answer>", "</answer>"),
    ),
    listed(
        "apriel",
        r"apriel",
        calls="<tool_calls>[{calls}]</tool_calls>",
        ignored_words=("[END FINAL RESPONSE]", "<|end|>"),
        thinking_blocks={"Here are my reasoning steps:": "[BEGIN FINAL RESPONSE]"},
        also_reserved=("[BEGIN FINAL RESPONSE]",),
    ),
    in_tags("longcat", r"longcat", tag="longcat_tool_call"),
    listed("apertus", r"apertus", calls="<|tools_prefix|>[{calls}]<|tools_suffix|>", keys=()),
    listed(
        "phi4_mini_json",
        r"phi-?4-mini",
        calls="functools[{calls}]",
        other_begins=("<|tool_call|>",),
        other_ends=("<|/tool_call|>", "<|end|>"),
    ),
    listed(
        "command_r_plus",
        r"command-r-plus",
        r"command-r-v01",
        calls="Action:\n```json\n[{calls}]\n```",
        keys=("tool_name", "parameters"),
        other_begins=("Action: ```json", "Action:```json", "<|START_ACTION|>"),
        other_ends=("<|END_ACTION|>",),
        ignored_words=COHERE_WORDS,
    ),
    *(
        listed(
            name,
            *models,
            calls="<|START_ACTION|>[{calls}]<|END_ACTION|>",
            keys=("tool_name", "parameters"),
            ignored_words=COHERE_WORDS,
        )
        for name, *models in (
            ("command_r7b", r"command-r-?7b", r"command-a"),
            ("command_r", r"command-r", r"c4ai-command"),
        )
    ),
    Form(
        name="gigachat3",
        models=(r"gigachat",),
        call="<|function_call|>{call}",
        other_begins=("function call<|role_sep|>",),
        other_ends=("</s>",),
        ignored_words=("<|message_sep|>", "assistant<|role_sep|>"),
        needs_arguments=True,
    ),
    in_tags("ernie45", r"ernie", ignored_words=("<response>", "</response>")),
    in_tags("reka_edge", r"reka"),
    listed("json_array", calls="[{calls}]", keys=("name", "parameters"), unmarked=True),
    Form(name="generic_json", call="{call}", unmarked=True, fenced=True),
    Form(
        name="llama3_json",
        models=(r"llama-?3",),
        call="{call}",
        between="; ",
        keys=("name", "parameters"),
        other_begins=("<|python_tag|>",),
        ignored_words=("<|eom_id|>", "<|eot_id|>"),
        unmarked=True,
    ),
    listed(
        "merged_json",
        calls='{"content": "", "tool_calls": [{calls}]}',
        read=merged_json.read,
        own_delimiters=Delimiters(),
        other_constraints={"json_schema": merged_calls},
        declare=bare_json_tools,
        instruction="Your whole answer is one JSON object: the text for the user, and the calls, none or several:",
        example='{"content": "TEXT", "tool_calls": [{"name": "NAME", "arguments": {"PARAMETER": "VALUE"}}]}',
        rules="The results of calls come in <tool_response> with the next message.",
    ),
)
BY_NAME: Final = {form.name: form for form in FORMS}


def formats() -> dict[str, Form]:
    """All formats by name, in the order in which models are looked for."""
    return dict(BY_NAME)


def format_named(name: str) -> Form:
    """A text format by its name. Raises ValueError, which lists the known names, for any other."""
    if name not in BY_NAME:
        near = get_close_matches(name, BY_NAME, n=3)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise ValueError(f"unknown text format {name!r}: {hint}Known are {', '.join(BY_NAME)}")
    return BY_NAME[name]


def format_for(model: str) -> Form:
    """The format that a model of this name writes; for an unknown one `<tool_call>`, read tolerantly.

    >>> format_for("NousResearch/Hermes-3-Llama-3.1-8B").name
    'hermes'
    """
    for form in FORMS:
        if any(re.search(pattern, model, re.IGNORECASE) for pattern in form.models):
            return form
    return BY_NAME[FALLBACK]

"""What a person is asked: whether a call may run, or for their input; and how they can answer."""

from __future__ import annotations

from dataclasses import fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from toolcrib.call import CallKey
from toolcrib.dataclass import dataclass
from toolcrib.fingerprint import fingerprint
from toolcrib.visible import with_title

if TYPE_CHECKING:
    from toolcrib.forms import Form
    from toolcrib.repair import Edit

__all__ = ["Answer", "Doubt", "InputRequest", "Lasting", "Preview", "Question", "Scope", "Verdict"]


class Lasting(StrEnum):
    """How long an "always" holds: in this run, in this project, or in all projects of this user."""

    RUN = "run"
    PROJECT = "project"
    USER = "user"


@dataclass(frozen=True, slots=True)
class InputRequest:
    """What a tool wants to have from a person: words, a choice, or a form filled in.

    Attributes:
        text: The question.
        options: What the person may choose from.
        several: More than one of the options may be chosen.
        form: Fields to fill in; the reply has their values.
        source: Who wrote the question, where it is not the model: the name of a remote server.
        url: An address that the question is about. The person is shown it whole; nothing opens it by itself.
        reason: Why the person is asked, in words of toolcrib; "the model asks" without any.
    """

    text: str
    options: tuple[str, ...] = ()
    several: bool = False
    form: Form = ()
    source: str = ""
    url: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked. It is data: it can be stored, and answered elsewhere.

    Attributes:
        key: The call that waits.
        tool: The name of its tool.
        action: What would be done, in a few words; for input, the question in the model's words.
        reason: Why a person is asked.
        arguments: The arguments that the call would run with, without secrets.
        effect: "read", "write" or "destructive".
        fingerprint: Binds the answer to exactly this tool and these arguments.
        edits: How the arguments were repaired.
        patterns: What the action reaches, for the question of a tool in the middle of its work.
        preview: What the call would do: a diff, for example.
        digest: The state that the preview was made from. If it has changed when the answer comes, the question is
            asked again.
        prefixes: The beginnings of commands that an answer of scope "prefix" would allow; empty where not offered.
        folders: The folders below which an answer of scope "folder" would allow the tool to read and write files; empty
            where it is not offered.
        strict: No answer is remembered.
        lastings: The durations that an "always" may have here. An answer that names another one holds for the run.
        title: The tool's name for people; empty where its author gave none.
        kind: "approval" asks whether the call may run. "input" asks for words or a choice: a YES whose `message` or
            `chosen` has the reply, or a NO from a person who does not want to say.
        options: What a person may choose from, for input; they may always say something else in words.
        several: More than one of the options may be chosen.
        form: The fields of a form, for input: a YES has their values.
        source: For input: the name of the remote server that asks; empty where the model asks.
        url: For input: the address that the question is about.
    """

    key: CallKey
    tool: str
    action: str
    reason: str
    arguments: Any
    effect: str
    fingerprint: str
    edits: tuple[Edit, ...] = ()
    patterns: tuple[str, ...] = ()
    preview: str = ""
    digest: str = ""
    prefixes: tuple[tuple[str, ...], ...] = ()
    folders: tuple[str, ...] = ()
    strict: bool = False
    lastings: tuple[Lasting, ...] = tuple(Lasting)
    title: str = ""
    kind: Literal["approval", "input"] = "approval"
    options: tuple[str, ...] = ()
    several: bool = False
    form: Form = ()
    source: str = ""
    url: str = ""

    @property
    def heading(self) -> str:
        """What would be done, with the tool's title."""
        asks_to_run = self.action == f"run {self.tool}"
        return with_title(self.action, self.tool, self.title) if asks_to_run else self.action

    @property
    def id(self) -> str:
        """The name under which an answer is given later. It stands for this call, its fingerprint and its digest."""
        return fingerprint("question", [list(self.key), self.fingerprint, self.digest])[:32]

    def to_dict(self) -> dict[str, Any]:
        """The question as plain JSON data, for a page, a queue or a file."""
        return {
            "id": self.id,
            "key": list(self.key),
            "tool": self.tool,
            "action": self.action,
            "reason": self.reason,
            "arguments": self.arguments,
            "effect": self.effect,
            "fingerprint": self.fingerprint,
            "edits": [edit.to_dict() for edit in self.edits],
            "patterns": list(self.patterns),
            "preview": self.preview,
            "digest": self.digest,
            "prefixes": [list(prefix) for prefix in self.prefixes],
            "folders": list(self.folders),
            "strict": self.strict,
            "lastings": list(self.lastings),
            "title": self.title,
            "kind": self.kind,
            "options": list(self.options),
            "several": self.several,
            "form": self._form_schema(),
            "source": self.source,
            "url": self.url,
        }

    def _form_schema(self) -> dict[str, Any] | None:
        """The form as a JSON Schema; None without one."""
        if not self.form:
            return None
        from toolcrib.forms import form_schema

        return form_schema(self.form)


@dataclass(frozen=True, slots=True)
class Preview:
    """What a person is shown of a call before it runs, and a digest of the state that it was made from."""

    text: str
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A tool's own reason why a person should look at a call, in one line.

    With `must_ask` a person is asked even if the policy allows the call.
    """

    reason: str
    must_ask: bool = False


class Scope(StrEnum):
    """What an "always" covers: these arguments, commands that begin with the same words, files below the same
    folder, or the whole tool."""

    ARGUMENTS = "arguments"
    PREFIX = "prefix"
    FOLDER = "folder"
    TOOL = "tool"


class Verdict(StrEnum):
    """How a question is answered: YES allows the call, NO refuses it, ALWAYS allows this call and later ones like it.

    The answer's `scope` and `lasting` say which later calls an ALWAYS covers, and for how long.
    """

    YES = "yes"
    NO = "no"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer to a question. The model is told the `message` of a NO.

    The verdict may be given as its word ("yes", "no", "always"); any other word is NO. ALWAYS is remembered
    for `scope` and `lasting`, at most until `expires` (seconds since the epoch); an unknown scope, lasting or
    time counts as the narrowest. `arguments` replace those of the call: they are validated and decided on
    anew, and the model is told. To a question for input, `chosen` and `message` are what the person replied; to
    one with a form, `values` by the names of its fields (without a value, a field has its default).
    """

    verdict: Verdict
    message: str = ""
    by: str = ""
    scope: Scope = Scope.ARGUMENTS
    lasting: Lasting = Lasting.RUN
    expires: float | None = None
    arguments: dict[str, Any] | None = None
    chosen: tuple[str, ...] = ()
    values: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        # JSON, a form or a terminal may give any text, or any value
        for name, kind, narrowest in (
            ("verdict", Verdict, Verdict.NO),
            ("scope", Scope, Scope.ARGUMENTS),
            ("lasting", Lasting, Lasting.RUN),
        ):
            given: Any = getattr(self, name)
            if not isinstance(given, kind):
                known = isinstance(given, str) and given in list(kind)
                object.__setattr__(self, name, kind(given) if known else narrowest)
        if self.expires is not None and not _is_time(self.expires):
            object.__setattr__(self, "expires", 0.0)  # an invalid time counts as passed
        if type(self.chosen) is not tuple:  # a list, from JSON
            object.__setattr__(self, "chosen", tuple(map(str, self.chosen)))
        if self.message:
            from toolcrib.visible import without_controls

            object.__setattr__(self, "message", without_controls(self.message))

    @property
    def allows(self) -> bool:
        """Whether the call may run."""
        return self.verdict is not Verdict.NO

    def lasting_among(self, offered: tuple[Lasting, ...]) -> Lasting:
        """How long this ALWAYS holds: its own `lasting` if that was `offered`, or else the run."""
        return self.lasting if self.lasting in offered else Lasting.RUN

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain JSON data; `Answer(**data)` reads it back."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value  # not nan

"""The result of a check: findings, and a report of them."""

from __future__ import annotations

from typing import Any

from toolcrib.dataclass import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: the check, the level ("error", "warning" or "note") and a message for the author."""

    check: str
    severity: str
    message: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.check}: {self.message}"


@dataclass(slots=True)
class Report:
    """What a check found of its `subject`; `calls` is how many calls were run to the end."""

    subject: str
    findings: list[Finding] = field(default_factory=list)
    calls: int = 0
    _alike: dict[tuple[str, str], list[Any]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def ok(self) -> bool:
        """Whether there is no error; warnings are advice."""
        return not any(finding.severity == "error" for finding in self.findings)

    def raise_for_findings(self, *, warnings: bool = False) -> None:
        """Raise AssertionError if there is an error or, when asked for, a warning."""
        bad = ("error", "warning") if warnings else ("error",)
        found = [str(finding) for finding in self.findings if finding.severity in bad]
        if found:
            raise AssertionError(f"{self.subject}:\n" + "\n".join(f"- {line}" for line in found))

    def error(self, check: str, message: str, *, alike: str = "") -> None:
        """Add an error; a second one that is `alike` is counted on the first."""
        self._add(Finding(check, "error", message), alike)

    def warning(self, check: str, message: str) -> None:
        self._add(Finding(check, "warning", message))

    def note(self, check: str, message: str) -> None:
        self._add(Finding(check, "note", message))

    def _add(self, finding: Finding, alike: str = "") -> None:
        key = (finding.check, alike or str(finding))
        if key not in self._alike:
            self._alike[key] = [finding, len(self.findings), 0]
            self.findings.append(finding)
        elif alike:
            seen = self._alike[key]
            seen[2] += 1
            first, place, more = seen
            others = "one other call" if more == 1 else f"{more} other calls"
            self.findings[place] = replace(first, message=f"{first.message} (the same in {others})")

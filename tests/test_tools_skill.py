"""Skills: listed by name and description, read when they are needed, and left out with a reason where they are broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import each
from toolcrib import Toolbox
from toolcrib.spec import ToolSpec
from toolcrib.tools.skills import SkillError, SkillFolders, SkillTool, read_manifest


def make_skill(
    top: Path, name: str, about: str = "Make a release.", body: str = "Run `scripts/tag.sh`."
) -> Path:
    folder = top / name
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {about}\n---\n{body}\n")
    (folder / "scripts" / "tag.sh").write_text("git tag v1\n")
    return folder


def shown(box: Toolbox) -> ToolSpec | None:
    """What a model is told of the tool; None where it is not offered."""
    return next(iter(box.run_sync(box.tool_list()).specs), None)


def test_skills_are_listed_cheaply_and_read_on_demand(tmp_path: Path) -> None:
    folder = make_skill(tmp_path, "release")
    make_skill(tmp_path, "review", "Read a change.")
    box = Toolbox([SkillTool([tmp_path])], autonomy="read_only")
    spec = shown(box)
    assert spec is not None
    assert "- release: Make a release.\n- review: Read a change." in spec.description
    assert "tag.sh" not in spec.description
    assert spec.input_schema["properties"]["name"]["enum"] == ["release", "review"]
    text = box.call_sync("skill", {"name": "release"}).text
    assert text.startswith("Run `scripts/tag.sh`.") and str(folder) in text and "scripts/tag.sh" in text
    assert box.call_sync("skill", {"name": "release", "file": "scripts/tag.sh"}).text == "git tag v1\n"


def test_a_skill_that_comes_changes_or_goes_is_noticed(tmp_path: Path) -> None:
    box = Toolbox([SkillTool([tmp_path / "later"])])
    assert shown(box) is None
    folder = make_skill(tmp_path / "later", "one")
    assert "one" in str(shown(box))
    (folder / "SKILL.md").write_text("---\nname: one\ndescription: Something else.\n---\nx")
    assert "Something else." in str(shown(box))
    (folder / "SKILL.md").unlink()
    assert shown(box) is None


def test_of_two_skills_with_one_name_the_first_folder_counts(tmp_path: Path) -> None:
    make_skill(tmp_path / "own", "one", "Mine.")
    make_skill(tmp_path / "theirs", "one", "Theirs.")
    skills, _ = SkillFolders([tmp_path / "own", tmp_path / "theirs"]).load()
    assert skills["one"].text.description == "Mine."


def test_nothing_outside_of_a_skill_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    folder = make_skill(tmp_path / "skills", "one")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "skills" / "SKILL.md").symlink_to(tmp_path / "secret.txt")
    linked = tmp_path / "skills" / "linked"
    linked.mkdir()
    (linked / "SKILL.md").symlink_to(tmp_path / "secret.txt")
    box = Toolbox([SkillTool([tmp_path / "skills"])])
    for file in ("../../secret.txt", str(tmp_path / "secret.txt"), "link.txt", "none.txt", "scripts"):
        result = box.call_sync("skill", {"name": "one", "file": file})
        assert result.is_error and "secret\n" not in result.text, file
    skills, problems = SkillFolders([tmp_path / "skills"]).load()
    assert list(skills) == ["one"] and "linked" in problems[0]


def test_an_unknown_skill_is_answered_with_those_there_are(tmp_path: Path) -> None:
    make_skill(tmp_path, "release")
    result = Toolbox([SkillTool([tmp_path])]).call_sync("skill", {"name": "relase"})
    assert result.is_error and "release" in result.text


def test_a_long_list_falls_back_to_names(tmp_path: Path) -> None:
    for number in range(60):
        make_skill(tmp_path, f"skill-{number:02}", "x" * 1_000)
    box = Toolbox([SkillTool([tmp_path])])
    spec = shown(box)
    assert spec is not None
    description = spec.description
    assert len(description) < 10_000 and description.endswith("- skill-59")


# Each line is nine times the one before: read or shown whole, it would be more than memory holds.
BOMB = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30))


@each(
    "text, words",
    [
        ("name: foo\n", "first line must be ---"),
        ("---\nname: a\ndescription: d\n", "second line of ---"),
        ("---\nname: a\n---\n", "description must be a text, got nothing"),
        ("---\nname: A b\ndescription: d\n---\n", "small letters"),
        ("---\nname: [a\ndescription: d\n---\n", "no YAML"),
        ("---\nname: 3\ndescription: d\n---\n", "name must be a text, got 3"),
        ("---\njust words\n---\n", "must have the lines"),
        (f"---\nname: a\ndescription: {'x' * 2_000}\n---\n", "longer than 1,024"),
        (f"---\nname: a\n#{'x' * 20_000}\n---\n", "longer than 16,000"),
        ("", "first line must be ---"),
        (f"---\n{BOMB}name: a\ndescription: *a9\n---\n", "no aliases"),
        ("---\na: &a {k: v}\nb: {<<: [*a, *a]}\nname: a\ndescription: d\n---\n", "no aliases"),
    ],
)
def test_a_broken_manifest_is_explained(text: str, words: str) -> None:
    with pytest.raises(SkillError, match=words):
        read_manifest(text)


@each(
    "text, name, body",
    [
        ("---\r\nname: t\r\ndescription: d\r\n---\r\nbody", "t", "body"),
        (
            "---\nname: t\ndescription: >\n  two\n  lines\nlicense: MIT\n---\n# H\n\n---\nMore.\n",
            "t",
            "# H\n\n---\nMore.",
        ),
        ("\ufeff---\nname: t-2\ndescription: d\n---\n", "t-2", ""),
    ],
)
def test_a_manifest_is_read(text: str, name: str, body: str) -> None:
    read = read_manifest(text)
    assert (read.name, read.body) == (name, body)

"""Where the paths of a sandbox lead: the same as the system says, whatever links and dots stand in them."""

from __future__ import annotations

import os
import random
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from toolcrib.command.sandbox.files.paths import existing, innermost, innermost_around, within

NAMES = ["a", "b", "c", "l", "m", "..", ".", ""]
PARTS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=5)


def test_existing_paths_lead_where_the_system_says(tmp_path: Path) -> None:
    source = random.Random(7)
    root = os.path.realpath(tmp_path)
    for _ in range(60):
        folder = Path(root, *source.choices("abc", k=source.randrange(3)))
        folder.mkdir(parents=True, exist_ok=True)
        link = folder / source.choice("lm")
        if not os.path.lexists(link):
            target = source.choice(["../a", "b", ".", "l", "nowhere", f"{root}/a/b", "../../c", "/"])
            link.symlink_to(target)
    tried = existed = 0
    for _ in range(3_000):
        paths = [
            source.choice([root, f"{root}/", "//" + root])
            + "/"
            + "/".join(source.choices(NAMES, k=source.randrange(6)))
            for _ in range(4)
        ]
        found = list(existing(paths))
        there = [path for path in paths if os.path.lexists(path)]
        assert found == [os.path.realpath(path) for path in there], paths
        tried, existed = tried + len(paths), existed + len(there)
    assert 0.1 < existed / tried < 0.9


@given(PARTS, st.lists(PARTS, max_size=6))
def test_the_innermost_place_is_the_longest_that_a_path_lies_in(
    path: list[str], places: list[list[str]]
) -> None:
    def whole(parts: list[str]) -> str:
        return "/" + "/".join(part for part in parts if part.isalpha())

    at, known = whole(path), {whole(place) for place in places}
    assert innermost(at, known) == max((one for one in known if within(at, one)), key=len, default="")
    others = known - {at}
    assert innermost_around(at, known) == max((one for one in others if within(at, one)), key=len, default="")

"""Skills: folders with instructions for a kind of work, listed by their descriptions and read when they are needed."""

from toolcrib.tools.skills.folders import SkillFiles, SkillFolders
from toolcrib.tools.skills.manifest import SkillError, SkillText, read_manifest
from toolcrib.tools.skills.skill import SkillParams, SkillTool

__all__ = [
    "SkillError",
    "SkillFiles",
    "SkillFolders",
    "SkillParams",
    "SkillText",
    "SkillTool",
    "read_manifest",
]

"""The settings in `toolcrib.toml`: which tools there are, and how they work; of the user, and of a trusted project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.settings.catalogue import CATALOGUE, BuiltIn
    from toolcrib.settings.file import SettingsError, SettingsFile, read_settings
    from toolcrib.settings.joined import JoinedSettings, SettingInEffect, join_settings
    from toolcrib.settings.model import ToolSettings

__all__ = [
    "CATALOGUE",
    "BuiltIn",
    "JoinedSettings",
    "SettingInEffect",
    "SettingsError",
    "SettingsFile",
    "ToolSettings",
    "join_settings",
    "read_settings",
]

__getattr__ = lazy_names(
    __name__,
    {
        "catalogue": ("CATALOGUE", "BuiltIn"),
        "file": ("SettingsError", "SettingsFile", "read_settings"),
        "joined": ("JoinedSettings", "SettingInEffect", "join_settings"),
        "model": ("ToolSettings",),
    },
)

"""The commands, a module each; see `toolcrib.cli` for how to add one."""

"""The second moment of a tool: at its first use, types and docstring become schema, validator and description."""

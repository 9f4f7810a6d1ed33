"""What an agent remembers between runs, in SQLite: tools over a store that file tools can open, too."""

from toolcrib.tools.memory.memory_files import MemoryFiles, MemoryFilesParams
from toolcrib.tools.memory.memory_forget import Forget, ForgetParams
from toolcrib.tools.memory.memory_recall import Recall, RecallParams
from toolcrib.tools.memory.memory_store import Remember, RememberParams
from toolcrib.tools.memory.store import Memory, MemoryStore

__all__ = [
    "Forget",
    "ForgetParams",
    "Memory",
    "MemoryFiles",
    "MemoryFilesParams",
    "MemoryStore",
    "Recall",
    "RecallParams",
    "Remember",
    "RememberParams",
]

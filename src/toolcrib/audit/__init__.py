"""An append-only log of what was decided and done, in a hash chain that shows changes and missing lines.

`log.py` says what stands in a line, `writer.py` is the thread that writes lines, `log_file.py` the file on the disk,
`chain.py` the seals, `key.py` the key.
"""

from toolcrib.audit.chain import LogBreak, LogCheck, verify
from toolcrib.audit.key import read_key
from toolcrib.audit.log import AuditLog
from toolcrib.audit.log_file import AuditError

__all__ = ["AuditError", "AuditLog", "LogBreak", "LogCheck", "read_key", "verify"]

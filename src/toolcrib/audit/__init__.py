"""An append-only log of what was decided and done, whose lines hang together so that changes show."""

from toolcrib.audit.chain import Broken, Checked, verify
from toolcrib.audit.log import AuditLog, read_key
from toolcrib.audit.log_file import AuditError

__all__ = ["AuditError", "AuditLog", "Broken", "Checked", "read_key", "verify"]

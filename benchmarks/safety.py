"""All figures of safety, one program after the other: `python benchmarks/safety.py [FOLDER of recorded commands]`.

In an environment with toolcrib[shell]; the escapes and the injected orders build or need more, and say so.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = {
    "injected orders, by rules": ["injection/run.py"],
    "a policy's decision": ["policy_decision.py"],
    "opening a file": ["file_open.py"],
    "a sandboxed command": ["sandboxed_command.py"],
    "masking of secrets": ["redaction.py"],
}


def main() -> int:
    programs = dict(PROGRAMS)
    if len(sys.argv) > 1:
        programs["bypasses of shell policies"] = ["shell_bypasses.py", sys.argv[1]]
    print(f"{os.getloadavg()[0]:.1f} processes were busy when it began.")
    failed = 0
    for title, (program, *arguments) in programs.items():
        print(f"\n## {title}\n", flush=True)
        failed += subprocess.run([sys.executable, str(HERE / program), *arguments]).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())

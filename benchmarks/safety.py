"""Measures safety, not time: `python benchmarks/safety.py [--docs] [FOLDER of recorded commands]`.

`--docs` puts them into docs/benchmarks.md. The first builds an environment with AgentDojo; the second runs in one with
toolcrib. What safety costs in time is measured by `run.py`; escapes and builds have commands of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECORDED = HERE.parents[1] / "shared" / "cases" / "shell-bypass"


def main() -> int:
    docs = ["--docs"] if "--docs" in sys.argv[1:] else []
    folder = next((word for word in sys.argv[1:] if word != "--docs"), str(RECORDED))
    programs = {"injected orders, by rules": ["injection/run.py", "--all", *docs]}
    if Path(folder).is_dir():
        programs["bypasses of shell policies"] = ["shell_bypasses.py", folder, *docs]
    print(f"{os.getloadavg()[0]:.1f} processes were busy when it began.")
    failed = 0
    for title, (program, *arguments) in programs.items():
        print(f"\n## {title}\n", flush=True)
        failed += subprocess.run([sys.executable, str(HERE / program), *arguments]).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())

"""Every kernel that the lists have, on graphs large enough for several threads. Takes minutes:
python -m tests.support.fence after tests.support.fence.all_kernels"""

from __future__ import annotations

from tests.support import kernel_workload

if __name__ == "__main__":
    kernel_workload.run()

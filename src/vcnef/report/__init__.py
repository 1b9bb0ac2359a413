"""One self-contained HTML page per run or comparison of runs: records in, text out; nothing is loaded or computed here.

`build_report([RunRecord(...)])` gives the page. It needs no script and no network, and reads on a phone and on paper.
"""

from vcnef.report.page import build_report
from vcnef.report.run_record import Picture, RunRecord

__all__ = ["Picture", "RunRecord", "build_report"]

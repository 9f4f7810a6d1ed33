"""All recordings through `check_codec`: read whole and streamed, and their answers sent back."""

from __future__ import annotations

import pytest

from tests.conformance.cassettes import all_records
from toolcrib.codecs.catalog import codec_named
from toolcrib.models.replay import APIS
from toolcrib.testing import check_codec


@pytest.mark.parametrize("api", APIS)
def test_recordings(api: str) -> None:
    exchanges = all_records(api)
    assert exchanges
    report = check_codec(codec_named(APIS[api]), exchanges=exchanges, count=5)
    report.raise_for_findings(warnings=True)

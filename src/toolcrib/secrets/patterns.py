"""Formats of tokens and keys that are masked although they are in no store. This second defence misses some.

A format has a row here if nothing else looks like it by accident: a fixed prefix and a length, a structure, or a name
that says "secret" before a value of high entropy. Git hashes, UUIDs, checksums, base64 images and minified code stay.
Only the token is masked, not the words around it, so that the text can still be understood.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from math import log2

from toolcrib.dataclass import dataclass

__all__ = ["PATTERNS", "TokenPattern", "entropy", "not_a_placeholder", "random_looking"]

_START = r"(?<![A-Za-z0-9_+/-])"
_END = r"(?![A-Za-z0-9_+/=-])"
# What a value is called; a token that a model needs to turn a page is no secret.
_PAGING = ("next", "prev", "page", "continuation", "cursor", "sync", "resume")
_SAYS_SO = (
    "".join(f"(?<!{word})(?<!{word}[_-])" for word in _PAGING)
    + r"(?:credentials?|secret|tokens?|passw(?:or)?d|pwd|passphrase|(?:api|access|secret|private|auth|account)[_-]?key)"
    + r"""["']?\s{0,3}[:=]?\Z"""
)


@dataclass(slots=True, frozen=True)
class TokenPattern:
    """One format. The expression is tried only on texts that contain one of the `hints`.

    The group `key` is masked, or the whole match if there is no such group; `fits` may still refuse it. `lookalike` is a
    wider expression for a word that looks like such a token, see `pattern_search.looks_like_a_token`.
    """

    kind: str
    expression: str
    hints: tuple[str, ...]
    source: str
    fits: Callable[[str], bool] = lambda key: True
    folded: bool = False  # whether upper and lower case are the same
    before: str = ""  # an expression for what must stand right before the match
    lookalike: str = ""


def entropy(text: str) -> float:
    """Shannon's entropy of a text, in bits per character.

    >>> round(entropy("aabb"), 1)
    1.0
    """
    size = len(text)
    return -sum(n / size * log2(n / size) for n in Counter(text).values()) if text else 0.0


def random_looking(key: str) -> bool:
    """Whether letters of both cases and digits are mixed at random, not as in a word, path, identifier, UUID or hash."""
    core = re.sub("[^A-Za-z0-9]", "", key)
    kinds = [0 if char.isdigit() else 1 if char.isupper() else 2 for char in core]
    if len(core) < 16 or set(kinds) != {0, 1, 2} or entropy(core) < 3.5:
        return False
    turns = sum(kind != after for kind, after in pairwise(kinds))
    return key.endswith("=") or (kinds.count(0) >= 2 and turns >= 0.42 * (len(core) - 1))


def not_a_placeholder(key: str) -> bool:
    """Whether a value is no placeholder such as `<password>`, `${PASSWORD}` or `****`."""
    return not re.fullmatch(
        r"[*x.•]+|<.*>|[$#]?\{.*\}?|%.*%|%\w|\$\(?\w+\)?|\[.*|your.*|password|passwd|pass|pw|secret|token|redacted",
        key,
        re.I,
    )


def _openai(key: str) -> bool:
    """Whether a word with `sk-` is a key: it has digits and a long piece without hyphens, unlike names of CSS classes."""
    return any(char.isdigit() for char in key) and bool(
        re.search("[A-Za-z0-9]{20}", key) or random_looking(key[3:])
    )


def _holds_a_key(block: str) -> bool:
    """Whether a PEM block holds a key. Texts about keys also quote its first line alone."""
    body = re.sub("-----[A-Z0-9 ]*-----", "", block)
    return re.search("[A-Za-z0-9+/]{20}", body) is not None


def _row(
    kind: str,
    expression: str,
    hints: str,
    source: str,
    fits: Callable[[str], bool] = lambda key: True,
    folded: bool = False,
    bare: bool = False,
    before: str = "",
    like: str = "",
) -> TokenPattern:
    text = expression if bare else f"{_START}(?:{expression}){_END}"
    return TokenPattern(kind, text, tuple(hints.split()), source, fits, folded, before, like)


PATTERNS: tuple[TokenPattern, ...] = (
    _row("private key", r"-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
         r"""(?:(?:-?[A-Za-z0-9+/=\s\\"',.:]){0,20000}-----END [A-Z0-9 ]{1,60}-----|(?:[\s\\nr"',+]{0,8}[A-Za-z0-9+/=]{20,4000}){0,200})""",
         "PRIVATE", "RFC 7468, RFC 4880", _holds_a_key, bare=True,
         like=r"BEGIN [A-Z ]*PRIVATE KEY-----"),
    _row("AWS access key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}", "AKIA ASIA ABIA ACCA",
         "docs.aws.amazon.com: IAM identifiers, unique prefixes",
         like=r"(?:AKIA|ASIA)[A-Z0-9]{16}"),
    _row("AWS secret key", r"""aws.{0,20}?(?:secret|private).{0,20}?(?:key)?["']?\s{0,3}(?:=>|[:=])\s{0,3}["']?(?P<key>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])""",
         "aws", "docs.aws.amazon.com: access keys are 40 characters", folded=True, bare=True),
    _row("Google API key", r"AIza[0-9A-Za-z_-]{35}", "AIza", "cloud.google.com: API keys",
         like=r"AIza[\w-]{30,}"),
    _row("Google OAuth secret", r"GOCSPX-[A-Za-z0-9_-]{28}", "GOCSPX-", "developers.google.com: OAuth clients"),
    _row("Google OAuth token", r"ya29\.[0-9A-Za-z_-]{20,2048}|1//0[0-9A-Za-z_-]{30,512}", "ya29. 1//0", "developers.google.com: OAuth tokens",
         like=r"ya29\.[\w-]{20,}"),
    _row("Azure account key", r"(?:AccountKey|SharedAccessKey)=(?P<key>[A-Za-z0-9+/]{42,86}={1,2})", "AccountKey= SharedAccessKey=",
         "learn.microsoft.com: storage connection strings", bare=True),
    _row("Azure client secret", r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}", "Q~", "learn.microsoft.com: client secrets"),
    _row("Azure SAS signature", r"[?&]sig=(?P<key>[A-Za-z0-9%+/]{43,64}(?:=|%3[dD]))", "sig=", "learn.microsoft.com: SAS", bare=True),
    _row("GitHub token", r"gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255}", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
         "github.blog: token formats",
         like=r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"),
    _row("GitLab token", r"gl(?:pat|dt|rt|cbt|ptt|ft|oas|soat|agent|imt|ffct)-[0-9A-Za-z_-]{20,64}(?:\.[0-9a-z.]{2,20})?", "gl",
         "docs.gitlab.com: token prefixes",
         like=r"glpat-[\w-]{16,}"),
    _row("Anthropic key", r"sk-ant-[A-Za-z0-9_-]{20,200}", "sk-ant-", "docs.anthropic.com"),
    _row("OpenAI key", r"sk-(?:proj|svcacct|admin|None|or-v1|live|test)?-?[A-Za-z0-9_-]{20,250}", "sk-", "platform.openai.com, openrouter.ai",
         _openai,
         like=r"sk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{16,}"),
    _row("Stripe key", r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,247}|whsec_[A-Za-z0-9+/]{32,64}={0,2}", "_live_ _test_ whsec_", "docs.stripe.com: API keys",
         like=r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{16,}"),
    _row("Slack token", r"xox[abeoprs]-[A-Za-z0-9-]{10,250}|xoxe\.xox[bp]-\d-[A-Za-z0-9-]{10,250}|(?:xapp|xwfp|xoxe)-[A-Za-z0-9-]{10,250}", "xox xapp- xwfp-",
         "api.slack.com: token types",
         like=r"xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}"),
    _row("Slack webhook", r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/(?P<key>[A-Za-z0-9/_+-]{30,120})", "hooks.slack", "api.slack.com: incoming webhooks", bare=True),
    _row("Discord webhook", r"discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/(?P<key>\d{17,20}/[\w-]{60,80})", "/webhooks/", "discord.com/developers", bare=True),
    _row("Discord token", r"[MNO][A-Za-z\d_-]{23,27}\.[A-Za-z\d_-]{6}\.[A-Za-z\d_-]{27,45}", ".", "discord.com/developers: bot tokens",
         lambda key: random_looking(key.replace(".", "")) and entropy(key) > 4),
    # Its place in a URL is `https://api.telegram.org/bot<token>/getMe`.
    _row("Telegram token", r"(?:(?<![A-Za-z0-9_+-])|(?<=/bot))(?P<key>\d{8,10}:AA[A-Za-z0-9_-]{33})(?![A-Za-z0-9_-])", ":AA",
         "core.telegram.org: bots", bare=True),
    _row("Hugging Face token", r"hf_[A-Za-z]{34}|hf_[A-Za-z0-9]{34,40}|api_org_[A-Za-z]{34}", "hf_ api_org_", "huggingface.co: access tokens",
         like=r"hf_[A-Za-z0-9]{20,}"),
    _row("npm token", r"npm_[A-Za-z0-9]{36}", "npm_", "docs.npmjs.com",
         like=r"npm_[A-Za-z0-9]{30,}"),
    _row("PyPI token", r"pypi-AgE[A-Za-z0-9_-]{50,1000}", "pypi-AgE", "pypi.org: API tokens",
         like=r"pypi-[\w-]{40,}"),
    _row("RubyGems key", r"rubygems_[a-f0-9]{48}", "rubygems_", "guides.rubygems.org"),
    _row("Docker token", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,64}", "dckr_", "docs.docker.com"),
    _row("SendGrid key", r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}", "SG.", "docs.sendgrid.com",
         like=r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    _row("Mailchimp key", r"[0-9a-f]{32}-us\d{1,2}", "-us", "mailchimp.com/developer"),
    _row("Twilio key", r"SK[0-9a-f]{32}", "SK", "twilio.com/docs: API keys"),
    _row("DigitalOcean token", r"do[opr]_v1_[a-f0-9]{64}", "_v1_", "docs.digitalocean.com",
         like=r"dop_v1_[a-f0-9]{40,}"),
    _row("Shopify token", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}", "shp", "shopify.dev",
         like=r"shp(?:at|ss|ca)_[a-fA-F0-9]{24,}"),
    _row("Square token", r"sq0(?:atp|csp|idp)-[0-9A-Za-z_-]{22,43}", "sq0", "developer.squareup.com"),
    _row("Databricks token", r"dapi[a-f0-9]{32}(?:-\d)?", "dapi", "docs.databricks.com",
         like=r"dapi[a-f0-9]{30,}"),
    _row("HashiCorp token", r"hv[sbr]\.[A-Za-z0-9_-]{24,300}|[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}", "hvs. hvb. hvr. .atlasv1.", "developer.hashicorp.com"),
    _row("Cloudflare key", r"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}", "v1.0-", "developers.cloudflare.com: origin CA keys"),
    _row("Groq key", r"gsk_[A-Za-z0-9]{48,56}", "gsk_", "console.groq.com",
         like=r"gsk_[A-Za-z0-9]{20,}"),
    _row("xAI key", r"xai-[A-Za-z0-9]{70,90}", "xai-", "docs.x.ai",
         like=r"xai-[A-Za-z0-9]{20,}"),
    _row("Perplexity key", r"pplx-[A-Za-z0-9]{40,60}", "pplx-", "docs.perplexity.ai",
         like=r"pplx-[A-Za-z0-9]{20,}"),
    _row("Replicate token", r"r8_[A-Za-z0-9]{37,40}", "r8_", "replicate.com/docs",
         like=r"r8_[A-Za-z0-9]{20,}"),
    _row("LangSmith key", r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}", "lsv2_", "docs.langchain.com: LangSmith API keys",
         like=r"lsv2_(?:pt|sk)_[A-Za-z0-9_]{20,}"),
    _row("Tavily key", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{32}", "tvly-", "docs.tavily.com", like=r"tvly-[\w-]{16,}"),
    _row("Supabase token", r"sbp_[a-f0-9]{40}", "sbp_", "supabase.com/docs: access tokens", like=r"sbp_[a-f0-9]{30,}"),
    _row("Grafana token", r"glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}|glc_[A-Za-z0-9+/]{32,400}={0,2}", "glsa_ glc_", "grafana.com/docs"),
    _row("New Relic key", r"NRAK-[A-Z0-9]{27}", "NRAK-", "docs.newrelic.com"),
    _row("Sentry token", r"sntr[yu]s_[A-Za-z0-9+/=_-]{40,250}", "sntrys_ sntryu_", "docs.sentry.io"),
    _row("Linear key", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,64}", "lin_", "linear.app/developers"),
    _row("Notion token", r"ntn_[A-Za-z0-9]{40,60}|secret_[A-Za-z0-9]{43}", "ntn_ secret_", "developers.notion.com"),
    _row("Atlassian token", r"ATATT3[A-Za-z0-9_=-]{180,220}|ATCTT3[A-Za-z0-9_=-]{100,250}|ATBB[A-Za-z0-9]{32}", "ATATT3 ATCTT3 ATBB", "support.atlassian.com"),
    _row("Postman key", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}", "PMAK-", "learning.postman.com"),
    _row("Age secret key", r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}", "AGE-SECRET-KEY-", "age-encryption.org"),
    _row("JWT", r"eyJ[A-Za-z0-9_-]{5,2000}\.eyJ[A-Za-z0-9_-]{4,8000}\.[A-Za-z0-9_-]{10,2000}|eyJ[A-Za-z0-9_-]{5,2000}\.e30\.[A-Za-z0-9_-]{10,2000}",
         "eyJ", "RFC 7519",
         like=r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),
    _row("password in a URL", r"(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s:/@?#\"'<>]{0,200}:(?P<key>[^\s/@?#\"'<>]{1,200})@(?=[\w\[.-])",
         "://", "RFC 3986, 3.2.1", not_a_placeholder, bare=True),
    _row("credentials", r"""\b(?:proxy-)?authorization["']?\s{0,4}[:=]\s{0,4}["']?(?:bearer|basic|token|apikey|digest)\s{1,4}(?P<key>[A-Za-z0-9._~+/=-]{8,4000})""",
         "authorization", "RFC 9110, 11.6.2", not_a_placeholder, folded=True, bare=True),
    _row("bearer token", r"\bbearer\s{1,4}(?P<key>[A-Za-z0-9._~+/-]{16,4000}={0,2})", "bearer", "RFC 6750, 2.1",
         random_looking, folded=True, bare=True),
    _row("credentials", r"""[:=>]\s{0,3}["'`]?(?P<key>[A-Za-z0-9_+/.~-]{16,500}={0,2})(?![A-Za-z0-9_(\[])""",
         "credential secret token passw pwd passphrase key", "names that say so, with a value of high entropy",
         random_looking, folded=True, bare=True, before=_SAYS_SO),
)  # fmt: skip
"""The formats of tokens and keys that are masked although they are in no store."""

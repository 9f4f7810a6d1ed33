"""Key formats: found by their shape, and never in what only looks like them. No key here is or was one."""

from __future__ import annotations

import base64
import hashlib
import random
import string
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each
from toolcrib.secrets import PATTERNS, Redactor, TokenPattern

CHANCE = random.Random(11)
REDACTOR = Redactor({})


def made(alphabet: str, size: int) -> str:
    return "".join(CHANCE.choice(alphabet) for _ in range(size))


ALNUM = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"
URLSAFE = ALNUM + "-_"


def segment(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


JWT = ".".join([segment('{"alg":"HS256","typ":"JWT"}'), segment('{"sub":"1234567890"}'), made(URLSAFE, 43)])
PEM = "\n".join(
    [
        "-----BEGIN RSA PRIVATE" + " KEY-----",
        made(ALNUM, 64),
        made(ALNUM, 44) + "==",
        "-----END RSA PRIVATE" + " KEY-----",
    ]
)

KEYS = [
    ("AWS access key", "AKIA" + made(UPPER, 16)),
    ("Google API key", "AIza" + made(URLSAFE, 34) + "x"),
    ("Google OAuth secret", "GOCSPX-" + made(ALNUM, 28)),
    ("GitHub token", "ghp_" + made(ALNUM, 36)),
    ("GitHub token", "github_pat_" + made(ALNUM, 22) + "_" + made(ALNUM, 59)),
    ("GitLab token", "glpat-" + made(ALNUM, 20)),
    ("Anthropic key", "sk-ant-api03-" + made(ALNUM, 93) + "AA"),
    ("OpenAI key", "sk-proj-" + made(ALNUM, 48)),
    ("OpenAI key", "sk-" + made(ALNUM, 47) + "7"),
    ("Stripe key", "sk_live_" + made(ALNUM, 24)),
    ("Slack token", "xoxb-" + made("0123456789", 11) + "-" + made(ALNUM, 24)),
    ("Telegram token", made("123456789", 9) + ":AA" + made(ALNUM, 33)),
    ("Hugging Face token", "hf_" + made(string.ascii_letters, 34)),
    ("npm token", "npm_" + made(ALNUM, 36)),
    ("PyPI token", "pypi-AgEIcHlwaS5vcmc" + made(ALNUM, 100)),
    ("SendGrid key", "SG." + made(ALNUM, 22) + "." + made(ALNUM, 43)),
    ("DigitalOcean token", "dop_v1_" + made(HEX, 64)),
    ("Databricks token", "dapi" + made(HEX, 32)),
    ("HashiCorp token", "hvs." + made(ALNUM, 90)),
    ("Groq key", "gsk_" + made(ALNUM, 52)),
    ("Age secret key", "AGE-SECRET-KEY-1" + made("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)),
    ("JWT", JWT),
    ("private key", PEM),
    ("private key", PEM.replace("\n", "\\n")),
    ("private key", PEM.replace("RSA PRIVATE", "OPENSSH PRIVATE")),
]  # fmt: skip


def test_a_bots_token_is_masked_in_its_address() -> None:
    key = made("123456789", 10) + ":AA" + made(ALNUM, 33)
    done = Redactor({}).redact_text(f"https://api.telegram.org/bot{key}/sendMessage?x=1")
    assert done.value == "https://api.telegram.org/bot[secret Telegram token]/sendMessage?x=1"


@each(("kind", "key"), KEYS, ids=lambda value: str(value)[:12])
@each("around", ["{}", "key={}", '{{"key": "{}"}}', "({}),", "export K='{}'\n", "see {}. Then", "a\n{}\nb"])
def test_keys_are_masked_and_what_stands_around_them_is_not(kind: str, key: str, around: str) -> None:
    done = REDACTOR.redact_text(around.format(key))
    assert done.found == (kind,)
    assert done.value == around.format(f"[secret {kind}]")


IN_CONTEXT = [
    ("password in a URL", "DATABASE_URL=postgres://user:{}@localhost:5432/db", "s3cretpassword"),
    ("password in a URL", "redis://:{}@cache:6379", "p4ssW"),
    ("password in a URL", '"mongodb+srv://me:{}@c.example.net/?w=1"', "a%40b!c"),
    ("credentials", "Authorization: Basic {}", base64.b64encode(b"user:pass-word").decode()),
    ("credentials", '{{"authorization": "Bearer {}"}}', made(HEX, 32)),
    ("bearer token", "curl -H 'X-Auth: bearer {}'", "aB3xK9mW2pQ7vL4nR8sT1yU6"),
    ("credentials", "api_key = '{}'", "aB3xK9mW2pQ7vL4nR8sT1yU6"),
    ("credentials", '"clientSecret":"{}"', "aB3xK9mW2pQ7vL4nR8sT1yU6"),
    ("credentials", "MY_ACCESS_TOKEN={}", "aB3xK9mW2pQ7vL4nR8sT1yU6"),
    ("AWS secret key", "aws_secret_access_key = {}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("Azure account key", "AccountName=x;AccountKey={};End", base64.b64encode(bytes(range(64))).decode()),
    ("Slack webhook", "https://hooks.slack.com/services/{}", "T0AAAAAAA/B0BBBBBBB/" + made(ALNUM, 24)),
]


@pytest.mark.parametrize(("kind", "around", "key"), IN_CONTEXT)
def test_of_what_is_known_by_its_place_only_the_key_is_masked(kind: str, around: str, key: str) -> None:
    done = REDACTOR.redact_text(around.format(key))
    assert (done.value, done.found) == (around.format(f"[secret {kind}]"), (kind,))


PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + CHANCE.randbytes(3000)).decode()
MINIFIED = (
    "!function(e,t){'use strict';var n=function(e){return e&&e.__esModule?e:{default:e}},r=n(t(42)),"
    "o={apiKey:e.apiKey||process.env.API_KEY,token:e.getAccessToken(),password:e.form.elements.password.value,"
    "secret:void 0};e.exports=Object.assign({},r.default,o),e.exports.tokenFromHeader2=function(e){return "
    "e.headers.authorization.split(' ')[1]}}(module,require);//# sourceMappingURL=app.3f2a9c1b7e.min.js.map"
)
ORDINARY = {
    "git log": "\n".join(
        f"{hashlib.sha1(bytes([n])).hexdigest()} Fix the token parser ({n})" for n in range(50)
    ),
    "uuids": "\n".join(f"request_id: {uuid.UUID(int=CHANCE.getrandbits(128))}" for _ in range(50)),
    "checksums": "\n".join(f"{hashlib.sha256(bytes([n])).hexdigest()}  file{n}.tar.gz" for n in range(50)),
    "lock file": "\n".join(
        f'"integrity": "sha512-{base64.b64encode(hashlib.sha512(bytes([n])).digest()).decode()}",'
        for n in range(50)
    ),
    "image": f"![x](data:image/png;base64,{PNG})",
    "images": "\n".join(base64.b64encode(CHANCE.randbytes(2000)).decode() for _ in range(20)),
    "minified": MINIFIED,
    "paging": '{"nextPageToken": "CiAKGjBpNDd2Nmp2Zml2cXRwYjBpOXA", "next_token": "aB3xK9mW2pQ7vL4nR8sT1yU6", "pageToken":"QWxhZGRpbjpvcGVuIHNlc2FtZQ=="}',
    "settings": "max_tokens: 4096\ntoken_limit=128000\npassword_min_length: 12\nsecret_name: my-database-secret\napi_key: ${API_KEY}\n",
    "code": "token = self._token_source.fetch_token_2(timeout=30)\nkey = KeyboardInterruptHandler2Factory\nsecret: SecretStr = Field(...)\n",
    "placeholders": "postgres://user:password@host postgres://{user}:{password}@host https://$USER:$PASS@h https://u:***@h mysql://u:<pw>@h",
    "urls": "https://example.com:8080/@user git@github.com:a/b.git ssh://git@host:22/x http://[::1]:80/@v https://medium.com/@someone/a-b-c1d2e3f4a5b6",
    "paths": "token: /home/user/.cache/pip/wheels/3a/b2/c1/9f8e7d6c5b4a39281706",
    "style classes": '<div class="sk-cube-grid sk-fading-circle2 task-list-item-checkbox-1 risk-assessment-2024-report-final">',
    "key block named": 'if "-----BEGIN RSA PRIVATE" " KEY-----" in text or text.startswith("-----BEGIN PRIVATE'
    ' KEY-----"):\n    raise ValueError("no keys, please")\n',
    "public keys": "-----BEGIN PUBLIC KEY-----\n"
    + made(ALNUM, 64)
    + "\n-----END PUBLIC KEY-----\nssh-ed25519 AAAA"
    + made(ALNUM, 64)
    + " me@host",
    "aws ids": "arn:aws:iam::123456789012:role/x i-0abcd1234efgh5678 vpc-0a1b2c3d4e5f AROA" + "Q" * 5,
    "hex dump": "\n".join(f"{n:08x}: " + CHANCE.randbytes(16).hex(" ", 2) for n in range(0, 1600, 16)),
    "prose": "The bearer of this letter has authorization: see the secret garden. Password: see me. Credentials: a degree.",
    "docker": "sha256:" + made(HEX, 64) + " registry.example.com/app@sha256:" + made(HEX, 64),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_data_is_left_alone(name: str) -> None:
    text = ORDINARY[name]
    assert REDACTOR.redact_text(text).value == text


def test_random_base64_is_left_alone() -> None:
    for size in range(24, 3000, 61):
        text = base64.b64encode(CHANCE.randbytes(size)).decode()
        assert REDACTOR.redact_text(f"data: {text}\n").found == ()


@given(st.text(max_size=300), st.sampled_from([key for _, key in KEYS]))
def test_a_key_among_anything_does_not_come_through(text: str, key: str) -> None:
    assert key not in REDACTOR.redact_text(f"{text} {key} {text}").value


@pytest.mark.parametrize(
    "piece",
    [
        "-----BEGIN RSA PRIVATE" + " KEY-----",
        "eyJaaaaaaa.",
        "sk-",
        "://a:",
        "token=",
        "authorization: bearer ",
        "aws secret ",
        "a." * 9,
        "xoxe.",
    ],
)
def test_what_repeats_ends_in_good_time(piece: str) -> None:
    text = piece * (400_000 // len(piece))
    assert len(REDACTOR.redact_text(text).value) > 0


def test_every_row_names_its_source_and_rows_of_ones_own_can_be_added() -> None:
    assert all(row.source and row.hints for row in PATTERNS)
    own = TokenPattern("house key", r"HK-(?P<key>\d{6})", ("HK-",), "our handbook")
    done = Redactor({}, patterns=[*PATTERNS, own]).redact_text("open HK-123456 and AKIA" + "A" * 16)
    assert done.value == "open HK-[secret house key] and [secret AWS access key]"

"""Secrets do not travel: each kind is blanked and reported by kind and place, and what is none stays."""

from __future__ import annotations

import pytest

from agents_registry.relay import Options, Redacted, Redactor, carry
from agents_registry.sessions.neutral import Builder

BODY = "Ab3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF"
SECRETS = {
    "Anthropic key": ("export K=sk-ant-" + "api03-" + BODY, "sk-ant-api03-" + BODY),
    "OpenAI key": ("use sk-" + "proj-" + BODY + " now", "sk-proj-" + BODY),
    "AWS access key id": ("id AKIA" + "ABCDEFGHIJKLMNOP.", "AKIA" + "ABCDEFGHIJKLMNOP"),
    "GitHub token": ("git gh" + "p_" + BODY + "abcd", "ghp_" + BODY + "abcd"),
    "Slack token": ("xox" + "b-123456789012-abcdefghij", "xoxb-123456789012-abcdefghij"),
    "JSON web token": ("eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0In0." + BODY, "zdWIiOiIxMjM0In0"),
    "Telegram bot token": ("bot 123456789" + ":" + BODY + "abc ok", BODY + "abc"),
    "password in an address": ("postgres://me:hunter2-long@db/x", "hunter2-long"),
    "authorization header": ("curl -H 'Authorization: Bearer abcdef123456789'", "abcdef123456789"),
    "assigned secret": ('DB_PASSWORD="correct horse battery"', "correct horse battery"),
    "password": ("密码是 hunter2hunter2", "hunter2hunter2"),
    "private key": ("-----BEGIN RSA " + "PRIVATE KEY-----\nMIIabc\n" + BODY + "\n-----END RSA " + "PRIVATE KEY-----", BODY),
}


@pytest.mark.parametrize("kind", SECRETS)
def test_each_kind_of_secret_is_blanked_and_named(kind: str) -> None:
    text, secret = SECRETS[kind]
    redactor = Redactor()
    made = redactor.text(f"before {text} after", "here")
    assert secret not in made
    assert made.startswith("before ")
    assert made.endswith(" after")
    assert redactor.report() == (Redacted(kind, "here", 1),)


@pytest.mark.parametrize(
    "text",
    [
        "the token count is 12000 and the key idea is simple",
        "password = os.environ['DB_PASSWORD']",
        "api_key: ${API_KEY}",
        "token=<your token>",
        "see https://example.org:8080/path and git@host.example",
        "const secret = getSecret(name)",
        "primary key: id",
        "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    redactor = Redactor()
    assert redactor.text(text, "here") == text
    assert redactor.report() == ()


def test_a_secret_in_a_tool_call_a_result_or_a_request_goes_nowhere_in_what_is_carried() -> None:
    secrets = [secret for _text, secret in SECRETS.values()]
    made = Builder("claude", "s")
    made.cwd = "/w"
    for text, _secret in SECRETS.values():
        made.user(f"We must use {text}")
        made.call("c", "Bash", {"command": f"echo {text}"})
        made.result("c", f"printed {text}")
        made.text(f"decided on {text}")
    made.call("d", "Login", {"password": "swordfish-99", "user": "me"})
    for options in (Options(), Options(full=True)):
        carried = carry(made.done(), "codex", options)
        told = carried.as_text() + repr(carried.as_conversation())
        assert [secret for secret in [*secrets, "swordfish-99"] if secret in told] == []
        assert {one.kind for one in carried.report.redacted} >= {"private key", "GitHub token", "assigned secret"}
        assert not any(secret in repr(carried.report.as_json()) for secret in secrets)
    kept = carry(made.done(), "codex", Options(redact=False)).as_text()
    assert "swordfish-99" in kept


def test_a_further_detector_is_asked_too() -> None:
    redactor = Redactor(detector=lambda text: [(text.index("banana"), text.index("banana") + 6, "fruit")])
    assert redactor.text("a banana here", "x") == "a [redacted: fruit] here"
    assert redactor.report() == (Redacted("fruit", "x"),)


def test_a_key_without_an_end_is_blanked_to_the_end() -> None:
    assert Redactor().text("-----BEGIN " + "PRIVATE KEY-----\nMIIabc", "x") == "[redacted: private key]"

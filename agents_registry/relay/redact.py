"""Secrets out of what is carried to another agent: own rules on text, with a report of kind and place, never the value.

The rules know the prefixes that providers give their keys, private keys, tokens in headers, passwords in addresses, and
assignments to names that hold secrets. They are meant to miss little; a word too many that is blanked costs the
receiver nothing, since it can look in the files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agents_registry.sessions.neutral import Block, Text, Thinking, ToolCall, ToolResult

Detector = Callable[[str], list[tuple[int, int, str]]]
"""A further detector of the caller: (begin, end, kind) of each secret in a text."""

# kind, pattern; the group `s` is the secret, without one the whole match.
_RULES: tuple[tuple[str, str], ...] = (
    ("private key", r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----(?:.*?-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----|.*\Z)"),
    ("Anthropic key", r"\bsk-ant-[A-Za-z0-9_-]{16,}"),
    ("OpenAI key", r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}"),
    ("AWS access key id", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    ("GitHub token", r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})"),
    ("GitLab token", r"\bgl(?:pat|dt|rt|ptt|cbt)-[A-Za-z0-9_-]{20,}"),
    ("Slack token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-[A-Za-z0-9-]{20,}"),
    ("webhook address", r"https://(?:hooks\.slack\.com/services|(?:\w+\.)?discord(?:app)?\.com/api/webhooks)/(?P<s>[\w/-]{20,})"),
    ("Google key", r"\bAIza[A-Za-z0-9_-]{35}"),
    ("Stripe key", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("package registry token", r"\bnpm_[A-Za-z0-9]{36}|\bpypi-[A-Za-z0-9_-]{40,}"),
    ("Hugging Face token", r"\bhf_[A-Za-z0-9]{30,}"),
    ("SendGrid key", r"\bSG\.[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}"),
    ("DigitalOcean token", r"\bdo[opr]_v1_[a-f0-9]{64}"),
    ("Telegram bot token", r"\b\d{8,10}:[A-Za-z0-9_-]{35}\b"),
    ("JSON web token", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    ("password in an address", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@'\"]{0,100}:(?P<s>[^\s/@'\"$<{]{2,200})@"),
    ("authorization header", r"(?i)\b(?:proxy-)?authorization['\"]?\s*[:=]\s*['\"]?(?:bearer|basic|token)\s+(?P<s>[^\s'\"$<{,;]{8,})"),
    ("authorization header", r"(?i)\bbearer\s+(?P<s>[A-Za-z0-9_.~+/-]{20,}=*)"),
    (
        "assigned secret",
        r"(?i)\b[\w.-]{0,40}(?:passwords?|passwd|pwd|passphrase|secrets?|api[_-]?keys?|access[_-]?keys?|private[_-]?keys?"
        r"|auth[_-]?tokens?|tokens?|credentials?|client[_-]?secrets?)['\"]?\s{0,3}(?:=|:(?!:)|=>|:=)\s{0,3}"
        r"(?:\"(?P<s>[^\"\n]{6,400})\"|'(?P<s2>[^'\n]{6,400})'|(?P<s3>[^\s'\"`,;()\[\]{}<>]{8,400})(?![\w(\[]))",
    ),
    ("password", r"(?:密码|口令|密钥)\s?(?:是|为|:|：|=)\s?(?P<s>[!-~]{6,100})"),
    ("password option", r"(?i)\s--?(?:password|passwd|token|api-key|secret)[= ](?P<s>[^\s'\"$<{-][^\s'\"]{5,200})"),
)
_COMPILED = tuple((kind, re.compile(pattern, re.DOTALL)) for kind, pattern in _RULES)
_HINT = re.compile(
    r"-----BEGIN|sk-|AKIA|ASIA|ABIA|ACCA|gh[pousr]_|github_pat|gl(?:pat|dt|rt|ptt|cbt)-|xox|xapp-|hooks\.slack|webhooks|AIza|[rs]k_"
    r"|npm_|pypi-|hf_|SG\.|do[opr]_v1|\d{8}:|eyJ|://|[Bb]earer|BEARER|uthoriz|UTHORIZ|[Pp]ass|PASS|[Pp]wd|PWD|ecret|ECRET"
    r"|oken|OKEN|[Kk]ey|KEY|redential|REDENTIAL|密|口令"
)
"""Cheap: a text without any of these can hold nothing that a rule finds."""
_HARMLESS = re.compile(
    r"(?i)\A(?:\$.*|%.*%|<.*>|\{.*\}|\*+|x+|\.+|none|null|true|false|undefined|optional|required|string|redacted|changeme|example.*"
    r"|your[_ -].*|(?:os|process|self|settings|config|env|args|request|ctx|this|secrets)\b[.\[(].*|\[redacted.*|[a-z_]+\(.*|/.*|\d{1,7})\Z"
)


@dataclass(frozen=True, slots=True)
class Redacted:
    """So many secrets of one kind at one place."""

    kind: str
    place: str
    count: int = 1


class Redactor:
    """Blanks secrets and remembers which kinds were where. `active=False` only passes texts through.

    `detector` is asked after the own rules.
    """

    def __init__(self, *, active: bool = True, detector: Detector | None = None) -> None:
        self.active = active
        self._detector = detector
        self._found: Counter[tuple[str, str]] = Counter()

    def text(self, text: str, place: str) -> str:
        """The text with each secret replaced by `[redacted: KIND]`."""
        if not self.active or not text:
            return text
        if _HINT.search(text):
            for kind, rule in _COMPILED:
                text = rule.sub(lambda match, kind=kind: self._blank(match, kind, place), text)  # type: ignore[misc]
        if self._detector is not None:
            for begin, end, kind in sorted(self._detector(text), reverse=True):
                if 0 <= begin < end <= len(text):
                    self._found[kind, place] += 1
                    text = f"{text[:begin]}[redacted: {kind}]{text[end:]}"
        return text

    def value(self, value: Any, place: str, name: str = "") -> Any:
        """The same for each text inside JSON-like data; a text under a telling name counts as assigned to it."""
        if isinstance(value, str):
            made = self.text(value, place)
            if made == value and name and self.active and "\n" not in value:
                assigned = f'{name}="{value}"'
                if '"' not in value and self.text(assigned, place) != assigned:
                    return "[redacted: assigned secret]"
            return made
        if isinstance(value, Mapping):
            return {key: self.value(item, place, str(key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item, place, name) for item in value]
        return value

    def block(self, block: Block, place: str) -> Block:
        """A block of a turn, the same object when nothing was in it."""
        if not self.active:
            return block
        if isinstance(block, (Text, Thinking)):
            text = self.text(block.text, place)
            return block if text is block.text else replace(block, text=text)
        if isinstance(block, ToolCall):
            return replace(block, input=self.value(block.input, f"{place}, input of {block.name}"))
        if isinstance(block, ToolResult):
            text = self.text(block.text, f"{place}, result of a tool")
            return block if text is block.text else replace(block, text=text)
        return block

    def report(self) -> tuple[Redacted, ...]:
        """What was blanked, in the order first met."""
        return tuple(Redacted(kind, place, count) for (kind, place), count in self._found.items())

    def _blank(self, match: re.Match[str], kind: str, place: str) -> str:
        groups = match.groupdict()
        for name in ("s", "s2", "s3"):
            secret = groups.get(name)
            if secret is not None:
                if _HARMLESS.match(secret) or "[redacted" in secret:
                    return match[0]
                begin, end = match.start(name) - match.start(), match.end(name) - match.start()
                self._found[kind, place] += 1
                return f"{match[0][:begin]}[redacted: {kind}]{match[0][end:]}"
        self._found[kind, place] += 1
        return f"[redacted: {kind}]"

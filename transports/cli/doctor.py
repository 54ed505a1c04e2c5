"""`va doctor`: is everything in place, and if not, what to do."""

from __future__ import annotations

import click

_SIGNS = {"ok": ("ok", "green"), "warn": ("note", "yellow"), "fail": ("bad", "red")}


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def doctor(as_json: bool) -> None:
    """Check the installation and say what to mend.

    Works with and without a running supervisor. Exit code 1 when something cannot work as it is.
    """
    import json
    import os
    from collections import Counter

    from transports import paths
    from transports.service.health import examine

    checks = []
    for check in examine(paths.data_dir(), os.environ):
        checks.append(check)
        if not as_json:
            word, colour = _SIGNS[check.state]
            click.echo(f"{click.style(f'{word:>4}', fg=colour)}  {check.name}: {check.detail}")
            if check.fix:
                click.echo(f"      -> {check.fix}")
    counts = Counter(check.state for check in checks)
    if as_json:
        document = {"ok": not counts["fail"], "checks": [check._asdict() for check in checks]}
        click.echo(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        click.echo(f"\n{counts['ok']} well, {counts['warn']} to look at, {counts['fail']} broken.")
    if counts["fail"]:
        raise SystemExit(1)

"""`va settings`: look at and change the settings file."""

from __future__ import annotations

import click


@click.group("settings")
def settings() -> None:
    """Look at and change settings.

    They are read when the supervisor starts: after a change, `va down` and `va up`.
    """


@settings.command("get")
@click.argument("key")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def get_setting(key: str, as_json: bool) -> None:
    """Print the value in force of KEY (like handover.ttl_s)."""
    import json

    from transports import paths
    from transports import settings as declared

    wanted = declared.find(key)
    for one in declared.describe(paths.data_dir()):
        if one.setting.key == wanted.key:
            value = declared.plain(one.value)
            document = {"key": wanted.key, "value": value, "source": one.source}
            click.echo(json.dumps(document, ensure_ascii=False) if as_json else _shown(value))


@settings.command("set")
@click.argument("key")
@click.argument("value")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def set_setting(key: str, value: str, as_json: bool) -> None:
    """Write KEY = VALUE into the settings file; its comments stay."""
    import json
    import os

    from transports import paths, settings_file
    from transports import settings as declared
    from transports.cli.people import only_people

    setting = declared.find(key)
    only_people("the settings")
    written = settings_file.set_value(paths.data_dir(), key, value)
    if as_json:
        click.echo(json.dumps({"key": setting.key, "value": written}, ensure_ascii=False))
    else:
        click.echo(f"{setting.key} = {_shown(written)}")
    if setting.variable in os.environ:
        click.echo(f"Note: {setting.variable} is set and wins over the file.", err=True)
    run = paths.load_run(paths.data_dir())
    if run is not None and paths.is_alive(run):
        click.echo("Takes effect when the supervisor starts again: va down && va up", err=True)


@settings.command("unset")
@click.argument("key")
def unset_setting(key: str) -> None:
    """Take KEY out of the settings file, so that its default holds."""
    from transports import paths, settings_file
    from transports import settings as declared
    from transports.cli.people import only_people

    setting = declared.find(key)
    only_people("the settings")
    was_there = settings_file.unset_value(paths.data_dir(), key)
    default = _shown(declared.plain(setting.default))
    click.echo(f"{setting.key}: {'back to' if was_there else 'was not set; it has'} its default, {default}")


@settings.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def list_settings(as_json: bool) -> None:
    """Print all settings with their values, where these come from, and what they mean."""
    import json

    from transports import paths
    from transports import settings as declared

    described = declared.describe(paths.data_dir())
    if as_json:
        document = [
            {
                "key": one.setting.key,
                "value": declared.plain(one.value),
                "source": one.source,
                "default": declared.plain(one.setting.default),
                "kind": one.setting.kind,
                "variable": one.setting.variable,
                "doc": one.setting.doc,
            }
            for one in described
        ]
        click.echo(json.dumps(document, ensure_ascii=False, indent=2))
        return
    width = max(len(one.setting.key) for one in described)
    for one in described:
        source = "" if one.source == "default" else f"  [{one.source}]"
        click.echo(f"{one.setting.key:<{width}}  {_shown(declared.plain(one.value))}{source}")
        click.echo(f"{'':<{width}}  {click.style(one.setting.doc, dim=True)}")


@settings.command("path")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def settings_path(as_json: bool) -> None:
    """Print the path of the settings file."""
    import json

    from transports import paths
    from transports import settings as declared

    path = declared.path_of(paths.data_dir())
    click.echo(json.dumps({"path": str(path), "exists": path.exists()}) if as_json else path)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(str(part) for part in value)
    return str(value)

"""`va service`: run the supervisor as a service of the user's own service manager."""

from __future__ import annotations

import click


@click.group("service")
def service() -> None:
    """Start VibeAround at login, as a service of systemd or launchd.

    Not needed for trying it out: `va up` does without.
    """


@service.command("install")
@click.option("--print", "only_print", is_flag=True, help="Print the service definition; change nothing.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def install_service(only_print: bool, as_json: bool) -> None:
    """Write, enable and start the service. May be run again, after an upgrade for example."""
    from transports import paths
    from transports.service import manage

    data_dir = paths.data_dir()
    manager = manage.find(data_dir)
    if only_print:
        _print_definition(manager, as_json)
        return
    _report(manage.install(manager, data_dir), as_json)


@service.command("uninstall")
@click.option("--print", "only_print", is_flag=True, help="Print what would be removed; change nothing.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def uninstall_service(only_print: bool, as_json: bool) -> None:
    """Stop and remove the service. Data, settings and conversations stay."""
    from transports import paths
    from transports.service import manage

    manager = manage.find(paths.data_dir())
    if only_print:
        there = "would be stopped and removed" if manager.path.exists() else "does not exist"
        _report([f"{manager.path} {there}."], as_json)
        return
    _report(manage.uninstall(manager), as_json)


@service.command("status")
@click.option("--print", "only_print", is_flag=True, help="Print the service definition as it should be.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def service_status(only_print: bool, as_json: bool) -> None:
    """Tell whether the service is installed and running."""
    import json

    from transports import paths
    from transports.service import manage

    data_dir = paths.data_dir()
    manager = manage.find(data_dir)
    if only_print:
        _print_definition(manager, as_json)
        return
    state = manager.state()
    run = paths.load_run(data_dir)
    supervisor = run.pid if run is not None and paths.is_alive(run) else None
    if as_json:
        click.echo(json.dumps({**state._asdict(), "path": str(state.path), "supervisor_pid": supervisor}, indent=2))
        return
    if not state.installed:
        click.echo(f"Not installed ({state.path} does not exist). Install it with `va service install`.")
    else:
        click.echo(f"{state.name}: {state.detail}{f', pid {state.pid}' if state.pid else ''}")
        click.echo(f"{state.path}, {'enabled' if state.enabled else 'not enabled'}")
        if not state.current:
            click.echo("The file is not what this version writes: run `va service install` again.")
        if state.lingers is False:
            click.echo("It ends when you log out; `sudo loginctl enable-linger $USER` changes that.")
    if supervisor and supervisor != state.pid:
        click.echo(f"A supervisor started by hand is running (pid {supervisor}).")


def _print_definition(manager: object, as_json: bool) -> None:
    import json
    from typing import cast

    from transports.service.manage import Manager

    found = cast("Manager", manager)
    text = found.rendered().decode()
    click.echo(json.dumps({"path": str(found.path), "content": text}) if as_json else f"# {found.path}\n{text}", nl=as_json)


def _report(lines: list[str], as_json: bool) -> None:
    import json

    click.echo(json.dumps({"messages": lines}, ensure_ascii=False) if as_json else "\n".join(lines))

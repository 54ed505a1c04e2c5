"""The service manager: sd_notify, unit and plist rendering, install and status."""

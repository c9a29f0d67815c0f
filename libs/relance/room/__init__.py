"""A whole room on one machine: embedded servers, the services as child processes, bots."""

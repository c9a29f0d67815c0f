"""The lobby: accounts and sign-in, the catalogue of tables and its watchers, waiting lists, templates, private tables."""

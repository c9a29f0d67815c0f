"""The lobby: accounts and sign-in, the catalogue of tables, waiting lists, templates, private tables."""

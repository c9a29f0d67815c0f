"""The lobby: accounts and sign-in, the catalogue of tables, statistics, protections used."""

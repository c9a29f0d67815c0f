"""What every service of the room needs: settings, log, gRPC server, tokens, health, metrics, database, drain.

One subject a module; import the module and use its names through it: `from relance.runtime import auth, server`.
"""

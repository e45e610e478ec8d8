"""The HTTP door behind `python -m hadano.server --http`: Streamable HTTP on the official MCP SDK.

`access` says who may come in, `line` lets calls wait for the store, `tools` is the SDK's server
over the hall's table, `door` ties these together for one request, `listener` owns the sockets.
Nothing in here is imported until `--http` is given: standard input and output pay nothing for it.
"""

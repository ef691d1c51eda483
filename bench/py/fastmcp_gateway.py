"""fastmcp_gateway.py PORT COMMAND…: a gateway made with fastmcp, in front of a server on stdio."""
import sys

from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy

port, program, *arguments = sys.argv[1:]
gateway = create_proxy(StdioTransport(command=program, args=arguments, keep_alive=True))
gateway.run(transport="http", host="127.0.0.1", port=int(port), show_banner=False, log_level="ERROR")

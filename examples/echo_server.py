# The server for echo_client.cpp: responds to every request with its params.
import json
import sys

for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        response = {"jsonrpc": "2.0", "id": request["id"], "result": request.get("params")}
        print(json.dumps(response, ensure_ascii=False), flush=True)

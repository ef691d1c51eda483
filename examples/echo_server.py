# The other side of echo_client.cpp: answers every request with its params.
import json
import sys

for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": request.get("params")}
        print(json.dumps(answer, ensure_ascii=False), flush=True)

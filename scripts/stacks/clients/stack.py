"""Reads a response slowly with one of Python's HTTP libraries: stack.py LIBRARY URL BODY PAUSE_MS"""
import json
import sys
import time
from urllib.parse import urlsplit

library, url, body, pause_ms = sys.argv[1], sys.argv[2], sys.argv[3].encode(), int(sys.argv[4])
headers = {"content-type": "application/json"}
size = 65536


def pieces():
    if library.startswith("http.client"):
        import http.client

        at = urlsplit(url)
        connection = http.client.HTTPConnection(at.hostname, at.port)
        connection.request("POST", at.path, body, headers)
        response = connection.getresponse()
        if library == "http.client-line":
            yield from response
        else:
            while piece := response.read(size):
                yield piece
    elif library == "urllib":
        import urllib.request

        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as response:
            while piece := response.read(size):
                yield piece
    else:
        import requests

        with requests.post(url, data=body, headers=headers, stream=True) as response:
            yield from response.iter_content(size)


count, error = 0, None
try:
    for piece in pieces():
        if count == 0:
            time.sleep(pause_ms / 1000)
        count += len(piece)
except Exception as problem:
    # http.client hands over what it has read by the error itself.
    count += len(getattr(problem, "partial", b"") or b"")
    error = type(problem).__name__
print(json.dumps({"bytes": count, "error": error}))

"""A robot in Python, standard library only: leases items, renews while it works, says how it ended.

MILLRACE_URL and MILLRACE_KEY say where and as whom; the queue's name is the first argument, and a
second one says how many items to do before it stops.
"""

import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request

URL = os.environ["MILLRACE_URL"]
KEY = os.environ["MILLRACE_KEY"]
LEASE_SECONDS = 30


class BusinessError(Exception):
    """Trying again is no use."""


def call(method, path, body=None):
    """Answers (status, body). Waits and says the same again while the service is away or busy."""
    for attempt in range(8):
        request = urllib.request.Request(
            URL + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            if error.code not in (429, 503):
                return error.code, json.loads(error.read())
            time.sleep(float(error.headers.get("Retry-After", 1)))
        except (urllib.error.URLError, TimeoutError):
            time.sleep(min(30, 2**attempt))
    raise SystemExit("The service does not answer.")


def work(payload):
    """Your work. What it returns is stored as the item's result."""
    if payload.get("amount", 0) < 0:
        raise BusinessError("An invoice cannot be negative.")
    return {"total": round(payload["amount"] * 1.2, 2)}


class Renewal(threading.Thread):
    """Holds the item for longer, three times per lease."""

    def __init__(self, item):
        super().__init__(daemon=True)
        self.item = item
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(LEASE_SECONDS / 3):
            body = {"token": self.item["token"], "lease_seconds": LEASE_SECONDS}
            status, _ = call("POST", f"/api/queue-items/{self.item['id']}/renew", body)
            if status != 200:
                return


def handle(item):
    renewal = Renewal(item)
    renewal.start()
    try:
        end = {"status": "DONE", "result": work(item["payload"])}
    except BusinessError as error:
        end = {"status": "FAILED", "exception_type": "business", "error_message": str(error)}
    except Exception as error:
        end = {"status": "FAILED", "exception_type": "application", "error_message": repr(error)}
    finally:
        renewal.over.set()
    status, answer = call("PUT", f"/api/queue-items/{item['id']}", {**end, "token": item["token"]})
    if status == 200:
        print(item["reference"] or item["id"], answer["status"], answer["result"], flush=True)
    else:
        # Somebody else has it by now: what we did does not count.
        print(item["reference"] or item["id"], answer["code"], flush=True)


def main():
    queue, left = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else -1
    while left != 0:
        wish = {"queue_name": queue, "wait_seconds": 20, "lease_seconds": LEASE_SECONDS}
        status, item = call("POST", "/api/queue-items/next", wish)
        if status == 200:
            handle(item)
            left -= 1
        elif status != 204:
            raise SystemExit(f"{status} {item['code']}: {item['detail']}")


main()

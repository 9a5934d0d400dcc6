"""Sends an event to the collector, and retries until the collector has accepted or rejected it."""

import datetime, http.client, json, os, time, urllib.error, urllib.request, uuid


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Disables redirects: urllib would follow them with GET, which loses the events but can return 200."""

    def redirect_request(self, *_):
        return None


opener = urllib.request.build_opener(NoRedirects)


def post(request):
    """Returns status, body and headers of a response, also for error statuses."""
    try:
        response = opener.open(request, timeout=10)
    except urllib.error.HTTPError as error:
        response = error
    with response:
        return response.status, response.read().decode(), response.headers


def send(events):
    """Sends until the collector has accepted or rejected every event. Returns the results of rejected events."""
    request = urllib.request.Request(
        os.environ["COLLECTOR_URL"] + "/v0/events",
        json.dumps(events).encode(),
        {"Authorization": "Bearer " + os.environ["METERLINE_EMITTER_KEY"], "Content-Type": "application/json"},
    )
    while True:
        pause = 1
        try:
            status, text, headers = post(request)
            if status == 202 or (status == 400 and '"results"' in text):
                return json.loads(text)["results"]
            if status not in (408, 429) and status < 500:
                raise RuntimeError(f"{status}: {text}")
            if headers.get("Retry-After", "").isdigit():  # a proxy may send a date instead
                pause = int(headers["Retry-After"])
        except (OSError, http.client.HTTPException) as error:  # no response, or an incomplete one
            print(error)
        time.sleep(pause)


event = {
    "eventId": str(uuid.uuid4()),
    "timestamp": datetime.datetime.now(datetime.timezone.utc).isoformat(),
    "accountId": "guide",
    "workspace": "staging",
    "resourceType": "sandbox",
    "resourceName": "python",
    "billingDimension": "sandbox_compute_runtime_gbs",
    "usage": "7.25",
}
print("rejected, from Python:", send([event]))

"""Sends an event to the collector, and again until there is a response for it."""

import datetime, http.client, json, os, time, urllib.error, urllib.request, uuid


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """urllib follows a redirect with GET, which loses the events and may get 200."""

    def redirect_request(self, *_):
        return None


opener = urllib.request.build_opener(NoRedirects)


def post(request):
    """The status, the text and the headers of a response, whatever it says."""
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
            if headers.get("Retry-After", "").isdigit():  # else a date, of a proxy
                pause = int(headers["Retry-After"])
        except (OSError, http.client.HTTPException) as error:  # no response, or not to the end
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

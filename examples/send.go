// Sends an event to the collector, and retries until the collector has accepted or rejected it.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

type event map[string]any

// send retries until the collector has processed every event, and returns its response.
func send(events []event) (string, error) {
	body, err := json.Marshal(events)
	if err != nil {
		return "", err
	}
	client := http.Client{
		Timeout: 10 * time.Second,
		// Do not follow redirects: a redirect can turn the POST into a GET, which loses the events but can return 200.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for {
		request, err := http.NewRequest("POST", os.Getenv("COLLECTOR_URL")+"/v0/events", bytes.NewReader(body))
		if err != nil {
			return "", err
		}
		request.Header.Set("Authorization", "Bearer "+os.Getenv("METERLINE_EMITTER_KEY"))
		request.Header.Set("Content-Type", "application/json")
		pause := 1
		response, err := client.Do(request)
		if err != nil { // no response
			log.Print(err)
		} else {
			text, err := io.ReadAll(response.Body)
			response.Body.Close()
			switch code := response.StatusCode; {
			case err != nil: // incomplete response: the outcome is unknown
				log.Print(err)
			case code == http.StatusAccepted:
				return string(text), nil
			case code != 408 && code != 429 && code < 500: // a 400 lists the error of each event
				return "", fmt.Errorf("%s: %s", response.Status, text)
			}
			if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
				pause = seconds
			}
		}
		time.Sleep(time.Duration(pause) * time.Second)
	}
}

func main() {
	response, err := send([]event{{
		"eventId":          "build-4711",
		"timestamp":        time.Now().UTC().Format(time.RFC3339Nano),
		"accountId":        "guide",
		"workspace":        "staging",
		"resourceType":     "job",
		"resourceName":     "go",
		"billingDimension": "job_compute_runtime_gbs",
		"usage":            "0.25",
	}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("response, from Go:", response)
}

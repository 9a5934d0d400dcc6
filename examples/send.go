// Sends an event to the collector, and again until there is a response for it.
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

// send sends until there is a response for every event, and returns that.
func send(events []event) (string, error) {
	body, err := json.Marshal(events)
	if err != nil {
		return "", err
	}
	client := http.Client{
		Timeout: 10 * time.Second,
		// Followed, a redirect may become a GET, which loses the events and may get 200.
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
			case err != nil: // not to the end: nothing is known
				log.Print(err)
			case code == http.StatusAccepted:
				return string(text), nil
			case code != 408 && code != 429 && code < 500: // with 400 the text says for each event what is wrong
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
	fmt.Println("answered, from Go:", response)
}

// Reads a response slowly with Go's net/http: stack URL BODY PAUSE_MS
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

func read() (count int, err error) {
	pause, _ := strconv.Atoi(os.Args[3])
	response, err := http.Post(os.Args[1], "application/json", strings.NewReader(os.Args[2]))
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	piece := make([]byte, 65536)
	for {
		n, err := response.Body.Read(piece)
		if count == 0 {
			time.Sleep(time.Duration(pause) * time.Millisecond)
		}
		count += n
		if err == io.EOF {
			return count, nil
		}
		if err != nil {
			return count, err
		}
	}
}

func main() {
	count, err := read()
	var problem any
	if err != nil {
		words := strings.Split(err.Error(), ": ")
		problem = words[len(words)-1]
	}
	line, _ := json.Marshal(map[string]any{"bytes": count, "error": problem})
	fmt.Println(string(line))
}

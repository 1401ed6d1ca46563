// Checks a history of a store with Porcupine, a linearizability checker that is not ours:
//
//	npm run histories -- --store postgres --export history.json
//	go mod init histories && go get github.com/anishathalye/porcupine && go run . history.json
//
// Each run is one object. Its sequential specification knows notes, questions, answers, the end and the owner.
// A refused operation has no effect, and one with an unknown outcome may have its effect at any later time.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

type operation struct {
	Actor    string `json:"actor"`
	Kind     string `json:"kind"`
	Run      string `json:"run"`
	Id       int    `json:"id"`
	Revision int    `json:"revision"`
	Choice   string `json:"choice"`
	From     int64  `json:"from"`
	To       *int64 `json:"to"`
	Outcome  string `json:"outcome"`
	Saw      []int  `json:"saw"`
	Asked    []int  `json:"asked"`
	final    *final
}

type question struct {
	Id       int    `json:"id"`
	Revision int    `json:"revision"`
	Answer   string `json:"answer"`
}

type final struct {
	Run       string     `json:"run"`
	Notes     []int      `json:"notes"`
	Questions []question `json:"questions"`
	End       int        `json:"end"`
}

type history struct {
	Operations []operation `json:"operations"`
	Finals     []final     `json:"finals"`
}

// The state of a run. It is kept as JSON, so that equal states are equal strings.
type state struct {
	Started bool
	Owner   string
	// The process that owned the run last.
	Last      string
	Notes     []int
	Questions []question
	End       int
}

func encode(s state) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func decode(text string) state {
	var s state
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		panic(err)
	}
	return s
}

func equal(one, other []int) bool {
	if len(one) != len(other) {
		return false
	}
	for at := range one {
		if one[at] != other[at] {
			return false
		}
	}
	return true
}

func idsOf(questions []question) []int {
	ids := []int{}
	for _, it := range questions {
		ids = append(ids, it.Id)
	}
	sort.Ints(ids)
	return ids
}

func sorted(ids []int) []int {
	all := append([]int{}, ids...)
	sort.Ints(all)
	return all
}

// The state after an operation, and if it is possible.
func apply(s state, o operation) (state, bool) {
	// The workers of a process overlap, so one may write while another parks the run. HistoryJudge has the rule for writes after a park.
	isLast := s.Owner == "" && s.Last == o.Actor
	drives := s.Started && s.End == 0 && (s.Owner == o.Actor || isLast)
	switch o.Kind {
	case "start":
		if s.Started {
			return s, false
		}
		s.Started, s.Owner, s.Last = true, o.Actor, o.Actor
	case "note":
		// A late fact is recorded while nobody owns the run.
		if !s.Started || (s.Owner != o.Actor && s.Owner != "") {
			return s, false
		}
		s.Notes = append(append([]int{}, s.Notes...), o.Id)
	case "ask":
		if !drives {
			return s, false
		}
		s.Questions = append(append([]question{}, s.Questions...), question{Id: o.Id, Revision: o.Revision})
	case "park", "release":
		// A second park has no effect, and neither has one beside the end.
		if !drives && !(s.Started && isLast) {
			return s, false
		}
		s.Owner = ""
	case "end":
		if !drives {
			return s, false
		}
		s.End, s.Owner = o.Id, ""
	case "answer":
		for at, it := range s.Questions {
			if it.Revision == o.Revision && it.Answer == "" {
				s.Questions = append([]question{}, s.Questions...)
				s.Questions[at].Answer = o.Choice
				return s, true
			}
		}
		return s, false
	case "claim":
		if !s.Started || s.End != 0 || !sees(s, o) {
			return s, false
		}
		s.Owner, s.Last = o.Actor, o.Actor
	case "read":
		return s, sees(s, o)
	case "final":
		return s, isFinal(s, o.final)
	}
	return s, true
}

func sees(s state, o operation) bool {
	if o.Outcome != "ok" {
		return true
	}
	if o.Saw == nil {
		return !s.Started
	}
	return s.Started && equal(s.Notes, o.Saw) && equal(idsOf(s.Questions), sorted(o.Asked))
}

func isFinal(s state, f *final) bool {
	if f == nil {
		return !s.Started
	}
	if !s.Started || !equal(s.Notes, f.Notes) || s.End != f.End || len(s.Questions) != len(f.Questions) {
		return false
	}
	for _, it := range f.Questions {
		found := false
		for _, own := range s.Questions {
			found = found || own == it
		}
		if !found {
			return false
		}
	}
	return true
}

func step(from, input, _ interface{}) []interface{} {
	o := input.(operation)
	if o.Outcome == "refused" {
		return []interface{}{from}
	}
	next, possible := apply(decode(from.(string)), o)
	states := []interface{}{}
	if possible {
		states = append(states, encode(next))
	}
	if o.Outcome == "unknown" && (!possible || states[0] != from) {
		states = append(states, from)
	}
	return states
}

var model = (&porcupine.NondeterministicModel{
	Init:  func() []interface{} { return []interface{}{encode(state{})} },
	Step:  step,
	Equal: func(one, other interface{}) bool { return one == other },
}).ToModel()

func main() {
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	var all history
	if err := json.Unmarshal(text, &all); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	runs := map[string][]porcupine.Operation{}
	for _, o := range all.Operations {
		returned := int64(math.MaxInt64 - 1)
		if o.To != nil && o.Outcome != "unknown" {
			returned = *o.To
		}
		runs[o.Run] = append(runs[o.Run], porcupine.Operation{Input: o, Call: o.From, Return: returned})
	}
	finals := map[string]*final{}
	for at := range all.Finals {
		finals[all.Finals[at].Run] = &all.Finals[at]
	}
	names := []string{}
	for run := range runs {
		names = append(names, run)
	}
	sort.Strings(names)
	counts := map[porcupine.CheckResult]int{}
	for _, run := range names {
		last := operation{Kind: "final", Run: run, Outcome: "ok", final: finals[run]}
		ops := append(runs[run], porcupine.Operation{Input: last, Call: math.MaxInt64, Return: math.MaxInt64})
		result := porcupine.CheckOperationsTimeout(model, ops, time.Minute)
		counts[result]++
		if result != porcupine.Ok {
			fmt.Printf("%s: %s, %d operations\n", run, result, len(ops))
		}
	}
	fmt.Printf("%d operations of %d runs: %d linearizable, %d not, %d unknown\n", len(all.Operations), len(names),
		counts[porcupine.Ok], counts[porcupine.Illegal], counts[porcupine.Unknown])
	if counts[porcupine.Ok] != len(names) {
		os.Exit(1)
	}
}

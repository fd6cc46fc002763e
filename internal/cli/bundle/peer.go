package bundle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// sentPart is a part on its way to the other side.
type sentPart struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

const cutMark = "\n(the rest is cut)\n"

// Pack returns parts for the other side, as JSON of at most limit bytes. The longest are cut to fit.
func Pack(parts []Part, limit int) []byte {
	sent := make([]sentPart, len(parts))
	for i, p := range parts {
		sent[i] = sentPart{p.Name, strings.ToValidUTF8(string(p.Content), "?")}
	}
	for {
		packed, err := json.Marshal(sent)
		if err != nil {
			panic(err) // strings always can be encoded
		}
		if len(packed) <= limit || len(sent) == 0 {
			return packed
		}
		longest := 0
		for i := range sent {
			if len(sent[i].Text) > len(sent[longest].Text) {
				longest = i
			}
		}
		text := sent[longest].Text
		sent[longest].Text = strings.ToValidUTF8(text[:len(text)/2], "") + cutMark
	}
}

// partName matches what the other side may call its parts.
var partName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,40}\.[a-z]{1,8}$`)

// maxParts is how many parts the other side may send.
const maxParts = 32

// Unpack returns the parts of the other side, which has packed them, below the directory peer.
func Unpack(packed []byte) ([]Part, error) {
	var sent []sentPart
	if err := json.NewDecoder(bytes.NewReader(packed)).Decode(&sent); err != nil {
		return nil, fmt.Errorf("read the parts of the other side: %w", err)
	}
	names := map[string]bool{}
	var parts []Part
	for _, p := range sent {
		if !partName.MatchString(p.Name) || names[p.Name] || len(names) == maxParts {
			return nil, fmt.Errorf("the other side sent more than %d parts, or one with the name %q", maxParts, p.Name)
		}
		names[p.Name] = true
		parts = append(parts, Part{"peer/" + p.Name, "the same of the other side", []byte(p.Text)})
	}
	return parts, nil
}

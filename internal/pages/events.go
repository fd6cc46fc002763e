package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// eventsPage returns the page of the events that the schema in a file describes.
func eventsPage(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	schema, err := hujson.Parse(content)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString("# Events\n\n" + prose(textAt(schema, "description")) +
		" The [schema](../events.schema.json) has each detail.\n\n")
	writeFields(&text, schema)
	for _, event := range membersAt(schema, "$defs") {
		if membersAt(event.value, "properties") == nil {
			continue
		}
		fmt.Fprintf(&text, "\n## %s\n\n", event.name)
		if about := textAt(event.value, "description"); about != "" {
			text.WriteString(prose(about) + "\n\n")
		}
		writeFields(&text, event.value)
	}
	return text.String(), nil
}

// writeFields writes the properties of an object.
func writeFields(text *strings.Builder, object hujson.Value) {
	required := wordsAt(object, "required")
	var rows [][]string
	for _, field := range membersAt(object, "properties") {
		name := "`" + field.name + "`"
		if slices.Contains(required, field.name) {
			name += " (always)"
		}
		rows = append(rows, []string{name, typeOf(field.value), prose(textAt(field.value, "description"))})
	}
	writeTable(text, []string{"Field", "Type", "Meaning"}, rows)
}

// typeOf describes the type of a property.
func typeOf(property hujson.Value) string {
	if reference := textAt(property, "$ref"); reference != "" {
		return strings.TrimPrefix(reference, "#/$defs/")
	}
	if words := wordsAt(property, "enum"); words != nil {
		return "`" + strings.Join(words, "`, `") + "`"
	}
	for _, member := range membersAt(property, "") {
		switch member.name {
		case "const":
			return "`" + strings.Trim(member.value.String(), ` "`) + "`"
		case "items":
			return "array of " + typeOf(member.value)
		}
	}
	return cmp.Or(textAt(property, "type"), strings.Join(wordsAt(property, "type"), " or "))
}

// member is a member of an object, in the order of the file.
type member struct {
	name  string
	value hujson.Value
}

// membersAt returns the members of the object that a member of an object is, or of the object itself with no name. It
// returns nil if there is none.
func membersAt(object hujson.Value, name string) (members []member) {
	of, is := object.Value.(*hujson.Object)
	if !is {
		return nil
	}
	for _, m := range of.Members {
		key, is := m.Name.Value.(hujson.Literal)
		switch {
		case !is:
		case name == "":
			members = append(members, member{key.String(), m.Value})
		case key.String() == name:
			return membersAt(m.Value, "")
		}
	}
	return members
}

// textAt returns the text that a member of an object is, empty if there is none.
func textAt(object hujson.Value, name string) string {
	for _, m := range membersAt(object, "") {
		if literal, is := m.value.Value.(hujson.Literal); is && m.name == name {
			return literal.String()
		}
	}
	return ""
}

// wordsAt returns the array of texts that a member of an object is, nil if there is none.
func wordsAt(object hujson.Value, name string) (words []string) {
	for _, m := range membersAt(object, "") {
		array, is := m.value.Value.(*hujson.Array)
		if !is || m.name != name {
			continue
		}
		for _, element := range array.Elements {
			if literal, is := element.Value.(hujson.Literal); is {
				words = append(words, literal.String())
			}
		}
	}
	return words
}

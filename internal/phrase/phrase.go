// Package phrase builds parts of messages: lists of alternatives, and what a mistyped word most likely meant.
//
// It knows no option and no command. Text of other origin is put into messages by package quote.
package phrase

import "strings"

// longestWord is more than a mistyped name has, and keeps the search for its neighbours short.
const longestWord = 64

// Nearest returns the candidate that a mistyped word most likely meant, or "" where none is close.
func Nearest(word string, candidates []string) string {
	if len(word) > longestWord {
		return ""
	}
	word = strings.ToLower(word)
	best, closest := "", len(word)/3+2
	for _, candidate := range candidates {
		distance := editDistance(word, candidate)
		if len(word) > 2 && strings.HasPrefix(candidate, word) {
			distance = 1 // cut short rather than mistyped
		}
		if distance < closest {
			best, closest = candidate, distance
		}
	}
	return best
}

// editDistance counts the bytes to insert, delete or change to turn one word into the other (Levenshtein).
func editDistance(from, to string) int {
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(from) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(to) {
			substitution := diagonal
			if from[i] != to[j] {
				substitution++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitution, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(to)]
}

// Or joins words for a sentence: "a, b or c".
func Or(words []string) string { return listed(words, " or ") }

// And joins words for a sentence: "a, b and c".
func And(words []string) string { return listed(words, " and ") }

func listed(words []string, beforeLast string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + beforeLast + words[last]
}

// Join joins the parts that are not empty.
func Join(separator string, parts ...string) string {
	var there []string
	for _, part := range parts {
		if part != "" {
			there = append(there, part)
		}
	}
	return strings.Join(there, separator)
}

// Wrap breaks a text at blanks into lines of at most width bytes. A word that is longer has a line of its own.
func Wrap(text string, width int) (lines []string) {
	for len(text) > width {
		blank := strings.LastIndexByte(text[:width+1], ' ')
		if blank < 0 {
			blank = strings.IndexByte(text, ' ')
		}
		if blank < 0 {
			break
		}
		lines, text = append(lines, strings.TrimRight(text[:blank], " ")), strings.TrimLeft(text[blank:], " ")
	}
	return append(lines, text)
}

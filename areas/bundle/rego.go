package bundle

import "regexp"

// regoWord is a comment, a string, a word, white space, or one other character of Rego.
var regoWord = regexp.MustCompile("(?s)#[^\n]*|\"(?:\\\\.|[^\"\\\\])*\"|`[^`]*`|[\\pL\\pN_]+|\\s+|.")

// RegoWords are the comments, strings, words, spaces and other characters of a text in Rego, in their order.
func RegoWords(text string) []string { return regoWord.FindAllString(text, -1) }

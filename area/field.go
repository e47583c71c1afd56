package area

// These two interfaces are the only ones that tare asks values of an area for. They belong to the types of a Spec's fields.

// Worded is a string that holds one of some words. The reader of files and the JSON Schema take them from there.
type Worded interface {
	Words() []string
}

// Guarded is a value that is not secret, but where users may write a secret by mistake: NAME=value for the name of a
// variable. A malformed one is not shown.
type Guarded interface {
	MayBeSecret() bool
}

package area

import (
	"fmt"
	"net/url"
)

// hintExposed is how a secret is kept from others, or given away on purpose.
const hintExposed = "where that is accepted, say so in the file: expose_secrets: true, and every report will say it"

// Exposure says how others on the network could read the secrets that are sent to u, or get them by answering in its
// place; empty: they could not.
func Exposure(u *url.URL, t *TLS) string {
	secure := u.Scheme == "https" || u.Scheme == "grpcs"
	switch {
	case LoopbackHost(u.Hostname()):
		return ""
	case !secure:
		return fmt.Sprintf("over %s://, which everybody on the way can read", u.Scheme)
	case t != nil && t.Insecure:
		return "to whoever answers, since the server's certificate is not verified"
	}
	return ""
}

// CheckExposure refuses to send the secrets of a section to u in a way in which others could get them, unless the file
// allows it.
func CheckExposure(u *url.URL, t *TLS, section any, allowed bool) error {
	how := Exposure(u, t)
	if how == "" || allowed || len(SentSecrets(section)) == 0 {
		return nil
	}
	mend := "write https:// if the server speaks TLS"
	if t != nil && t.Insecure {
		mend = "name the authority instead: tls: {ca: file.pem}"
	}
	return fmt.Errorf("secrets would go to %s %s: %s; %s", u.Host, how, mend, hintExposed)
}

// ConnectionNotes are what every report must say of how the target at u was reached with the secrets of a section.
func ConnectionNotes(u *url.URL, t *TLS, section any) (notes []string) {
	if t != nil && t.Insecure {
		notes = append(notes, NoteInsecure)
	}
	if n := noteExposure(u, t, section); n != "" {
		notes = append(notes, n)
	}
	return notes
}

// noteExposure says that the secrets of a section were sent to u in the open; empty: they were not.
func noteExposure(u *url.URL, t *TLS, section any) string {
	how := Exposure(u, t)
	if how == "" || len(SentSecrets(section)) == 0 {
		return ""
	}
	return fmt.Sprintf("secrets were sent to %s %s (expose_secrets)", u.Host, how)
}

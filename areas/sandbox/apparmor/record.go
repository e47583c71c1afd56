package apparmor

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tare/areas/sandbox/policy"
)

// A Refusal is what a profile does not allow, as the kernel reports it.
type Refusal struct {
	Operation string // the kernel's name for it, such as "open", "capable" or "create"
	Profile   string
	What      string // the path, capability, peer, or kind of socket
	Requested string // the permissions that the process wanted
	Denied    string // those of them that the profile does not give
	Command   string // the process's name
	PID       int
	// Enforced says that the operation failed, as it does outside of complain mode. Otherwise it went on.
	Enforced bool

	path, name string // as in policy.Act
}

// String returns the refusal such as "open /etc/shadow (r)".
func (r Refusal) String() string {
	text := strings.TrimSpace(r.Operation + " " + r.What)
	if r.Denied != "" {
		text += " (" + r.Denied + ")"
	}
	return text
}

// Act returns the refusal in terms of policies. It reports false for what no policy has rules about.
func (r Refusal) Act() (a policy.Act, ok bool) {
	a.Name = r.name
	a.Path = r.path
	switch {
	case r.Operation == "capable":
		a.Kind = policy.UseCapability
	case r.Operation == "mount":
		a.Kind = policy.MountIt
	case r.Operation == "umount":
		a.Kind = policy.Unmount
	case r.Operation == "ptrace":
		a.Kind = policy.Trace
	case !strings.HasPrefix(r.path, "/"):
		return policy.Act{}, false
	case strings.Contains(r.Denied, "x"):
		a.Kind = policy.Execute
	default:
		if strings.Contains(r.Denied, "r") {
			a.Access = append(a.Access, policy.Read)
		}
		if strings.ContainsAny(r.Denied, "wacdl") { // append, create, delete and link need the right to write
			a.Access = append(a.Access, policy.Write)
		}
		return a, len(a.Access) > 0
	}
	return a, true
}

// same reports whether two refusals are of the same thing, whichever process wanted it.
func (r Refusal) same(o Refusal) bool {
	return r.Operation == o.Operation && r.Profile == o.Profile && r.What == o.What && r.Denied == o.Denied
}

// parseRecord reads an audit record of AppArmor's, in the form of linux/security/apparmor/audit.c. It returns the name
// of the policy namespace, empty for that of the host. It reports false for other records.
func parseRecord(text string) (r Refusal, namespace string, ok bool) {
	f := fields(text)
	verdict := f["apparmor"]
	if verdict != "ALLOWED" && verdict != "DENIED" {
		return Refusal{}, "", false
	}
	_, namespace, _ = strings.Cut(f["namespace"], "//") // "root//tare-x"
	r = Refusal{
		Operation: f["operation"], Profile: f["profile"], Requested: f["requested_mask"], Denied: f["denied_mask"],
		Command: f["comm"], Enforced: verdict == "DENIED", What: subject(f),
		path: f["name"], name: cmp.Or(f["capname"], f["fstype"]),
	}
	if r.Operation == "mount" {
		r.path = f["srcname"] // its name is where
	}
	r.PID, _ = strconv.Atoi(f["pid"]) // 0 if the kernel does not say
	return r, namespace, true
}

// subject returns what an operation was about. Each operation has other fields.
func subject(f map[string]string) string {
	var parts []string
	for _, key := range []string{"capname", "fstype", "srcname", "name", "family", "sock_type", "signal", "peer"} {
		if v := f[key]; v != "" && !slices.Contains(parts, v) {
			parts = append(parts, v)
		}
	}
	if len(parts) == 0 && f["capability"] != "" {
		parts = append(parts, fmt.Sprintf("capability %s", f["capability"]))
	}
	if f["info"] != "" {
		parts = append(parts, "["+f["info"]+"]")
	}
	return strings.Join(parts, " ")
}

// encoded lists the fields that the kernel writes in hexadecimal digits if they hold spaces, quotes, control characters
// or bytes beyond ASCII, and in quotes otherwise.
var encoded = []string{"name", "profile", "namespace", "comm", "target", "peer", "srcname"}

// fields splits `key=value key="value with spaces"`. Of keys that come twice the first counts.
func fields(text string) map[string]string {
	out := map[string]string{}
	for text != "" {
		text = strings.TrimLeft(text, " \n\x00")
		end := strings.IndexAny(text, "= ")
		if end < 0 {
			return out
		}
		key := text[:end]
		if text[end] == ' ' {
			text = text[end:]
			continue
		}
		var value string
		var quoted bool
		value, text, quoted = fieldValue(text[end+1:])
		if !quoted && slices.Contains(encoded, key) {
			if b, err := hex.DecodeString(value); err == nil {
				value = string(b)
			}
		}
		if _, twice := out[key]; !twice {
			out[key] = value
		}
	}
	return out
}

// fieldValue splits a value from what follows it. The kernel writes no quotes inside of quotes.
func fieldValue(text string) (value, rest string, quoted bool) {
	if after, ok := strings.CutPrefix(text, `"`); ok {
		value, rest, _ = strings.Cut(after, `"`)
		return value, rest, true
	}
	end := strings.IndexAny(text, " \n\x00")
	if end < 0 {
		return text, "", false
	}
	return text[:end], text[end:], false
}

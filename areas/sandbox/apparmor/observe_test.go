package apparmor

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"tare/rigs/hosttest"
)

func TestObserveNamesWhatAProfileWouldRefuse(t *testing.T) {
	namespace := testNamespace(t)
	s := newScratch(t)
	text := "abi <abi/3.0>,\nprofile mine {\n  file,\n  deny \"" + s.secret + "\" w,\n  unix,\n  network unix,\n" +
		"  signal,\n  capability dac_override,\n  capability dac_read_search,\n  capability sys_ptrace,\n}\n"
	under := loadText(t, namespace, text, Complain)
	o, err := Observe(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	results, label := runConfined(t, under, [][]string{
		{"read", s.secret},
		{"write", s.secret},
		{"hostname"},
		{"hostname"},
		{"mount", "x", s.mountPoint, "tmpfs"},
		{"umount", s.mountPoint},
	})
	refusals, lost, err := o.Stop(t.Context())
	if err != nil || lost != 0 {
		t.Errorf("%d lost, %v", lost, err)
	}
	if label != under || slices.ContainsFunc(results, func(r string) bool { return r != "ok" }) {
		t.Errorf("%s: %q, want complain mode and no refusal", label, results)
	}
	var got []string
	for _, r := range refusals {
		got = append(got, r.String())
		if r.Enforced || r.Profile != "mine" || r.PID == 0 {
			t.Errorf("%+v", r)
		}
	}
	want := []string{
		"open " + s.secret + " (w)", "capable sys_admin", "mount tmpfs x " + s.mountPoint + "/ [failed mntpnt match]",
		"umount " + s.mountPoint + "/",
	}
	if !slices.Equal(got, want) {
		t.Errorf("refusals:\n%q, want\n%q", got, want)
	}
}

// TestObserveOfManyRecords makes more records at once than the kernel's queue holds by default (64).
func TestObserveOfManyRecords(t *testing.T) {
	refusals, lost := observeMany(t, testNamespace(t))
	if len(refusals) < 300 && lost == 0 {
		t.Errorf("%d refusals of 300 mounts, and none is said to be lost", len(refusals))
	}
}

// TestObserveSaysWhatItLoses limits the kernel to 5 records a second.
func TestObserveSaysWhatItLoses(t *testing.T) {
	if os.Getenv("TARE_IN_VM") == "" {
		hosttest.Missing(t, "the limit holds for the whole machine: it is set in a virtual machine only", "boot the lab VM")
	}
	namespace := testNamespace(t)
	limit := func(n uint32) {
		if err := limitAudit(n); err != nil {
			t.Fatal(err)
		}
	}
	limit(5)
	defer limit(0)
	refusals, lost := observeMany(t, namespace)
	if len(refusals) >= 300 || lost < 200 {
		t.Errorf("%d refusals of 300 mounts, %d said to be lost", len(refusals), lost)
	}
}

// limitAudit sets how many records the kernel makes a second; 0 is no limit.
func limitAudit(perSecond uint32) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_AUDIT)
	if err != nil {
		return err
	}
	defer unix.Close(fd)                                         //nolint:errcheck // nothing is read
	const set, rateLimit, size = 1001, 8, unix.NLMSG_HDRLEN + 40 // AUDIT_SET, AUDIT_STATUS_RATE_LIMIT
	var request [size]byte
	order := binary.NativeEndian
	order.PutUint32(request[0:], size)
	order.PutUint16(request[4:], set)
	order.PutUint16(request[6:], unix.NLM_F_REQUEST)
	order.PutUint32(request[unix.NLMSG_HDRLEN:], rateLimit)
	order.PutUint32(request[unix.NLMSG_HDRLEN+16:], perSecond)
	return unix.Sendto(fd, request[:], 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
}

// observeMany observes 300 different mounts under a profile that allows none.
func observeMany(t *testing.T, namespace string) (refusals []Refusal, lost int) {
	t.Helper()
	s := newScratch(t)
	under := loadText(t, namespace, "abi <abi/3.0>,\nprofile mine {\n  file,\n}\n", Complain)
	o, err := Observe(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	var attempts [][]string
	for i := range 300 {
		attempts = append(attempts, []string{"mount", fmt.Sprint("x", i), s.mountPoint, "tmpfs"},
			[]string{"umount", s.mountPoint})
	}
	runConfined(t, under, attempts)
	if refusals, lost, err = o.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	t.Logf("%d refusals, %d lost", len(refusals), lost)
	return refusals, lost
}

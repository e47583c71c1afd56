package reference

import (
	"errors"
	"net/url"
	"time"
)

// What an admin address does when it is asked, and the parameter that says with what.
const (
	actFlush   = "flush"
	actSlow    = "slow"
	actRotate  = "rotate"
	actRevoke  = "revoke"
	actRestore = "restore"
	actValue   = "value"
)

// does is what an STS can be asked to change while it runs.
func (t *sts) does() map[string]func(url.Values) error {
	return map[string]func(url.Values) error{
		actSlow: func(v url.Values) error {
			by, err := time.ParseDuration(v.Get(actValue))
			if err != nil || by < 0 {
				return errors.New("slow: want a duration")
			}
			t.slower.Store(int64(by))
			return nil
		},
		actRotate: func(url.Values) error { return t.rotate() },
		actRevoke: func(v url.Values) error {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.revoked[v.Get(actValue)] = true
			return nil
		},
		actRestore: func(url.Values) error {
			t.mu.Lock()
			defer t.mu.Unlock()
			clear(t.revoked)
			return nil
		},
	}
}

// rotate replaces the keys.
func (t *sts) rotate() error {
	k, err := newKeys()
	if err == nil {
		t.keys.Store(k)
	}
	return err
}

// latency is how long a hop takes.
func (t *sts) latency() time.Duration {
	return t.knobs.UpstreamLatency + time.Duration(t.slower.Load())
}

func (t *sts) isRevoked(subject string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.revoked[subject]
}

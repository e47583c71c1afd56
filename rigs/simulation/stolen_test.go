package simulation

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

func TestProbe(t *testing.T) {
	share := 0.1
	fmt.Sscan(os.Getenv("SHARE"), &share)
	for _, k := range Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			for i := range 3 {
				q, err := RunStolen(t.Context(), k, 7, i, 0)
				if err != nil {
					t.Fatal(err)
				}
				s, err := RunStolen(t.Context(), k, 7, i, share)
				if err != nil {
					t.Fatal(err)
				}
				flag := ""
				if q.Error() < 0.05 && s.Error() > 0.05 {
					flag += " NUMBER"
				}
				if q.Right() && !s.Right() {
					flag += " CLASS"
				}
				if s.Result.Seconds > 1.5*q.Result.Seconds {
					flag += " SLOW"
				}
				if !slices.Contains([]string{"", "x"}, flag) {
					t.Logf("%s %d truth %.4g %v: quiet %.4g [%.4g %.4g] %s %.0f s; stolen %.4g [%.4g %.4g] %s %s %.0f s; %s %s %v",
						k.Name, i, q.Truth.Capacity, q.Truth.Classes, q.Result.Rate, q.Result.Lo, q.Result.Hi, q.Result.Signature.Class, q.Result.Seconds,
						s.Result.Rate, s.Result.Lo, s.Result.Hi, s.Result.Signature.Class, s.Result.Stop, s.Result.Seconds, flag, s.Result.Reason, s.Result.Warnings)
				}
			}
		})
	}
}

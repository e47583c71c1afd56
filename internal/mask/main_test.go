package mask

import (
	"testing"

	"tare/rigs/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

package pull

import (
	"context"
	"fmt"
	"sync/atomic"

	"k8s.io/klog/v2"
	config "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"

	"tare/plane/setting"
)

// intents is how many pulls under way the cache remembers: the kubelet's 2 × maxPods, and maxPods is 110 by default.
const intents = 220

// A station is a pull manager over a folder, as the kubelet makes it.
type station struct {
	s      setting.Setting
	folder string
	errs   complaints
	logger klog.Logger
	ctx    context.Context //nolint:containedctx // that of every call: it carries the logger, and nothing is made while calls are timed
	reads  atomic.Int64    // records that were looked for in the directory

	accessor pullmanager.PullRecordsAccessor // nil while disabled
	manager  pullmanager.ImagePullManager
}

func newStation(s setting.Setting, folder string) *station {
	t := &station{s: s, folder: folder}
	t.logger = klog.New(&t.errs)
	t.ctx = klog.NewContext(context.Background(), t.logger)
	return t
}

// restart makes accessor and manager anew over the records that lie there, as the kubelet does when it starts. Complaints of a record that cannot be
// read are kept.
func (t *station) restart() error {
	if t.s.Accessor == setting.Disabled {
		t.manager = &pullmanager.NoopImagePullManager{}
		return nil
	}
	direct, err := pullmanager.NewFSPullRecordsAccessor(t.logger, t.folder)
	if err != nil {
		return fmt.Errorf("open the records: %w", err)
	}
	t.accessor = counted{direct, &t.reads}
	if size := t.size(); size > 0 {
		t.accessor = pullmanager.NewCachedPullRecordsAccessor(t.logger, t.accessor, intents, int32(size), int32(t.s.Stripes))
	}
	m, err := pullmanager.NewImagePullManager(t.ctx, t.accessor, pullmanager.AlwaysVerifyImagePullPolicy(), nil, int32(t.s.Stripes))
	if err != nil {
		return fmt.Errorf("start the pull manager: %w", err)
	}
	t.manager = m
	return nil
}

// size is how many records the cache is asked to hold; 0: there is none. A cache that should hold all is asked for room for those that are being
// pulled besides: upstream's knows that it holds all only while it is not full. It may hold fewer than it is asked for: what it holds is measured.
func (t *station) size() int {
	switch t.s.Accessor {
	case setting.Cached:
		return t.s.Records + t.s.Concurrency
	case setting.LRU:
		return t.s.Size
	}
	return 0
}

// counted counts what is read from the directory. It costs 5 ns beside 20 µs.
type counted struct {
	pullmanager.PullRecordsAccessor
	reads *atomic.Int64
}

// GetImagePulledRecord implements pullmanager.PullRecordsAccessor.
func (c counted) GetImagePulledRecord(ref string) (*config.ImagePulledRecord, bool, error) {
	c.reads.Add(1)
	return c.PullRecordsAccessor.GetImagePulledRecord(ref)
}

package pull

import (
	"context"
	"fmt"
	"sync/atomic"

	"k8s.io/klog/v2"
	config "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"

	"tare/plane/setting"
)

// intents is the number of pulls in progress that the cache remembers: the kubelet's 2 × maxPods, and maxPods is 110 by
// default.
const intents = 220

// A station is a pull manager over a folder, created as the kubelet does.
type station struct {
	s      setting.Setting
	folder string
	errs   complaints
	logger klog.Logger
	ctx    context.Context //nolint:containedctx // of every call: it carries the logger, and timed calls allocate nothing
	reads  atomic.Int64    // lookups of records in the directory
	spare  int             // room in a cache for all records, for those of guard's pulls
	// runtime lists the images of the node, to a manager that finds intents; nil: there are no intents.
	runtime kubecontainer.ImageService

	accessor pullmanager.PullRecordsAccessor // nil if there is no pull manager
	manager  pullmanager.ImagePullManager
}

func newStation(s setting.Setting, folder string) *station {
	t := &station{s: s, folder: folder}
	t.logger = klog.New(&t.errs)
	t.ctx = klog.NewContext(context.Background(), t.logger)
	return t
}

// restart creates accessor and manager anew over the existing records, as the kubelet does when it starts. It keeps
// complaints about records that cannot be read.
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
	policy, err := pullmanager.NewImagePullCredentialVerificationPolicy(
		config.ImagePullCredentialsVerificationPolicy(t.s.Policy), nil)
	if err != nil {
		return fmt.Errorf("policy %s: %w", t.s.Policy, err)
	}
	m, err := pullmanager.NewImagePullManager(t.ctx, t.accessor, policy, t.runtime, int32(t.s.Stripes))
	if err != nil {
		return fmt.Errorf("start the pull manager: %w", err)
	}
	t.manager = m
	return nil
}

// size returns the capacity that the cache is asked for; 0 if there is no cache. A cache for all records also needs
// room for the images that are being pulled, because upstream's cache knows that it is complete only while it is not
// full. The cache may hold fewer records than it is asked for; the number that it holds is measured.
func (t *station) size() int {
	switch t.s.Accessor {
	case setting.Cached:
		return t.s.Records + t.s.Concurrency + t.spare
	case setting.LRU:
		return t.s.Size
	}
	return 0
}

// counted counts reads from the directory. Counting costs 5 ns per read of 20 µs.
type counted struct {
	pullmanager.PullRecordsAccessor
	reads *atomic.Int64
}

// GetImagePulledRecord implements pullmanager.PullRecordsAccessor.
func (c counted) GetImagePulledRecord(ref string) (*config.ImagePulledRecord, bool, error) {
	c.reads.Add(1)
	return c.PullRecordsAccessor.GetImagePulledRecord(ref)
}

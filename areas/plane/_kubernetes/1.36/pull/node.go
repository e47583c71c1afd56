package pull

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"k8s.io/klog/v2"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"

	"tare/plane/recordfile"
)

// nodeImages is how many images guard's pods pull, again and again: twice as many as can be under way at once, so that
// there are always some on the node.
const nodeImages = 2 * atOnce

// A node is what guard's pods share: the images that they pull, as a container runtime would know them. Only its
// ListImages is asked for.
type node struct {
	kubecontainer.ImageService

	manager sync.RWMutex // held for writing while the manager is replaced
	drawing sync.Mutex   // of the sequence that calls draw from
	images  []image
	there   []presence
	pulls   atomic.Uint64
}

// presence is whether an image is on the node. Its lock is held by those who rely on it.
type presence struct {
	sync.RWMutex

	is bool
}

// newNode returns a node whose images are numbered from first on.
func newNode(first int) *node {
	n := &node{there: make([]presence, nodeImages)}
	for i := range nodeImages {
		n.images = append(n.images, imageOf(first+i))
	}
	return n
}

// ListImages implements kubecontainer.ImageService.
func (n *node) ListImages(context.Context) (out []kubecontainer.Image, err error) {
	for i, of := range n.images {
		n.there[i].RLock()
		if n.there[i].is {
			out = append(out, kubecontainer.Image{ID: of.ref, RepoTags: []string{of.name}})
		}
		n.there[i].RUnlock()
	}
	return out, nil
}

// next returns the image that is pulled next.
func (n *node) next() int { return int((n.pulls.Add(1) - 1) % uint64(len(n.images))) }

// remove removes an image with its record, as the garbage collection of images does.
func (n *node) remove(i int, records pullmanager.PullRecordsAccessor) error {
	n.there[i].Lock()
	defer n.there[i].Unlock()
	n.there[i].is = false
	if records == nil {
		return nil
	}
	return records.DeleteImagePulledRecord(klog.Logger{}, n.images[i].ref)
}

// add adds an image that was pulled.
func (n *node) add(i int) {
	n.there[i].Lock()
	defer n.there[i].Unlock()
	n.there[i].is = true
}

// visit returns the first image from i on that is on the node, which stays until leave.
func (n *node) visit(i int) (found int, leave func(), err error) {
	for k := range n.images {
		one := &n.there[(i+k)%len(n.images)]
		one.RLock()
		if one.is {
			return (i + k) % len(n.images), one.RUnlock, nil
		}
		one.RUnlock()
	}
	return 0, nil, errors.New("no image that pods pull is on the node")
}

// keeps reports whether a file belongs to an image that guard's pods pull.
func (n *node) keeps(path string) bool {
	if n == nil {
		return false
	}
	for _, of := range n.images {
		if name := filepath.Base(path); name == recordfile.Name(of.ref) || name == recordfile.Name(of.name) {
			return true
		}
	}
	return false
}

// recorded counts the records of the images that guard's pods pull.
func (n *node) recorded(folder string) (count int) {
	if n == nil {
		return 0
	}
	for _, of := range n.images {
		path := filepath.Join(folder, filepath.FromSlash(recordfile.Pulled), recordfile.Name(of.ref))
		if _, err := os.Lstat(path); err == nil {
			count++
		}
	}
	return count
}

// find marks the images as being on the node that an earlier process has pulled, or was pulling: the container runtime
// has ended that pull meanwhile.
func (n *node) find(folder string) error {
	for i, of := range n.images {
		for dir, name := range map[string]string{recordfile.Pulled: of.ref, recordfile.Pulling: of.name} {
			_, err := os.Lstat(filepath.Join(folder, filepath.FromSlash(dir), recordfile.Name(name)))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("look for what was pulled: %w", err)
			}
			n.there[i].is = n.there[i].is || err == nil
		}
	}
	return nil
}

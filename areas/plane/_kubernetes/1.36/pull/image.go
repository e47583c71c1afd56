package pull

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	config "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"

	"tare/plane/recordfile"
)

const (
	// unknownImages is the number of images without a record that are requested.
	unknownImages = 1000
	// pulledImages is the least number of images that are pulled and removed again: one for each goroutine that pulls.
	pulledImages = 256
)

// An image is an image that pods request. All names are invented.
type image struct {
	name string // as in a pod, with its tag
	bare string // as in a record, without the tag
	ref  string // the runtime's
}

// imageOf returns the i-th image: names have a common length, and references have evenly spread hashes.
func imageOf(i int) image {
	bare := fmt.Sprintf("registry.example.com/team-%d/app-%d", i%97, i)
	return image{bare + ":v1", bare, fmt.Sprintf("sha256:%064x", uint64(i)*0x9E3779B97F4A7C15)}
}

// Images are numbered: first those with a record, then unknownImages without, then pulledImages that are pulled and
// removed.
func images(records int) []image {
	out := make([]image, records+unknownImages+pulledImages)
	for i := range out {
		out[i] = imageOf(i)
	}
	return out
}

// secretOf returns the k-th secret of each record, in a namespace that the record names.
func secretOf(k int) config.ImagePullSecret {
	return config.ImagePullSecret{
		UID: fmt.Sprintf("00000000-0000-4000-8000-%012x", k), Namespace: fmt.Sprintf("ns-%d", k), Name: "regcred",
		CredentialHash: hashOf(k),
	}
}

// copyOf returns the same credential in a namespace that no record names.
func copyOf(k int) config.ImagePullSecret {
	return config.ImagePullSecret{
		UID: fmt.Sprintf("00000000-0000-4000-9000-%012x", k), Namespace: fmt.Sprintf("new-%d", k), Name: "regcred",
		CredentialHash: hashOf(k),
	}
}

// strange returns a secret that no record names.
func strange() config.ImagePullSecret {
	return config.ImagePullSecret{
		UID: "00000000-0000-4000-a000-000000000000", Namespace: "strange", Name: "regcred",
		CredentialHash: hashOf(1 << 40),
	}
}

func hashOf(k int) string { return fmt.Sprintf("%064x", (uint64(k)+1)*0xD1B54A32D192ED03) }

// presents returns the credentials of a pod with this secret. Calling the result allocates nothing.
func presents(s config.ImagePullSecret) pullmanager.GetPodCredentials {
	secrets := []config.ImagePullSecret{s}
	return func() ([]config.ImagePullSecret, *config.ImagePullServiceAccount, error) { return secrets, nil, nil }
}

// recordOf returns the record of an image that was pulled with each of these secrets, in the order in which upstream
// sorts them when it merges.
func recordOf(m image, secrets []config.ImagePullSecret) *config.ImagePulledRecord {
	return &config.ImagePulledRecord{
		LastUpdatedTime: metav1.Now(), ImageRef: m.ref,
		CredentialMapping: map[string]config.ImagePullCredentials{m.bare: {KubernetesSecrets: slices.Clone(secrets)}},
	}
}

// wanted returns what a folder with the records of these images must contain.
func wanted(of []image, secrets int) recordfile.Want {
	w := recordfile.Want{Files: make(map[string]bool, len(of)), Secrets: secrets}
	for _, m := range of {
		w.Files[recordfile.Name(m.ref)] = true
	}
	return w
}

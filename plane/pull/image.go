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
	// unknownImages is how many images without a record are asked for.
	unknownImages = 1000
	// pulledImages is how many images are pulled and forgotten again, at least: one for each goroutine that does so.
	pulledImages = 256
)

// An image is one that pods ask for. All names are invented.
type image struct {
	name string // as in a pod, with a tag
	bare string // without it, as in a record
	ref  string // the runtime's
}

// imageOf makes the i-th image: names of a length that is common, references that are spread over the hashes.
func imageOf(i int) image {
	bare := fmt.Sprintf("registry.example.com/team-%d/app-%d", i%97, i)
	return image{bare + ":v1", bare, fmt.Sprintf("sha256:%064x", uint64(i)*0x9E3779B97F4A7C15)}
}

// Images are, by number: those with a record, then unknownImages without, then pulledImages that come and go.
func images(records int) []image {
	out := make([]image, records+unknownImages+pulledImages)
	for i := range out {
		out[i] = imageOf(i)
	}
	return out
}

// secretOf is the k-th secret of each record, as a namespace has it that the record knows.
func secretOf(k int) config.ImagePullSecret {
	return config.ImagePullSecret{
		UID: fmt.Sprintf("00000000-0000-4000-8000-%012x", k), Namespace: fmt.Sprintf("ns-%d", k), Name: "regcred",
		CredentialHash: hashOf(k),
	}
}

// copyOf is the same credential in a namespace that no record knows.
func copyOf(k int) config.ImagePullSecret {
	return config.ImagePullSecret{
		UID: fmt.Sprintf("00000000-0000-4000-9000-%012x", k), Namespace: fmt.Sprintf("new-%d", k), Name: "regcred",
		CredentialHash: hashOf(k),
	}
}

// strange is a secret of which no record knows anything.
func strange() config.ImagePullSecret {
	return config.ImagePullSecret{UID: "00000000-0000-4000-a000-000000000000", Namespace: "strange", Name: "regcred", CredentialHash: hashOf(1 << 40)}
}

func hashOf(k int) string { return fmt.Sprintf("%064x", (uint64(k)+1)*0xD1B54A32D192ED03) }

// presents is what a pod with this secret answers when it is asked for its credentials. Nothing is made when it is called.
func presents(s config.ImagePullSecret) pullmanager.GetPodCredentials {
	secrets := []config.ImagePullSecret{s}
	return func() ([]config.ImagePullSecret, *config.ImagePullServiceAccount, error) { return secrets, nil, nil }
}

// recordOf is the record of an image that was pulled with each of these secrets, in upstream's order: it sorts them when it merges.
func recordOf(m image, secrets []config.ImagePullSecret) *config.ImagePulledRecord {
	return &config.ImagePulledRecord{
		LastUpdatedTime: metav1.Now(), ImageRef: m.ref,
		CredentialMapping: map[string]config.ImagePullCredentials{m.bare: {KubernetesSecrets: slices.Clone(secrets)}},
	}
}

// wanted is what must lie in a folder with the records of these images.
func wanted(of []image, secrets int) recordfile.Want {
	w := recordfile.Want{Files: make(map[string]bool, len(of)), Secrets: secrets}
	for _, m := range of {
		w.Files[recordfile.Name(m.ref)] = true
	}
	return w
}

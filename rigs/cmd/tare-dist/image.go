package main

import "time"

// Media types of the OCI image specification.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// nobody is the user of the image, by number since it has no /etc/passwd.
const nobody = 65532

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// A layout collects the blobs of an image layout.
type layout []entry

func (l *layout) add(mediaType string, content []byte) descriptor {
	digest := sum(content)
	*l = append(*l, entry{name: "blobs/sha256/" + digest, content: content})
	return descriptor{MediaType: mediaType, Digest: "sha256:" + digest, Size: len(content)}
}

func (l *layout) addJSON(mediaType string, v any) descriptor { return l.add(mediaType, asJSON(v)) }

// image returns the image of all architectures as a tar of an OCI layout.
func (r *release) image(binaries map[string][]byte) []byte {
	l := layout{{name: "oci-layout", content: []byte(`{"imageLayoutVersion":"1.0.0"}`)}}
	var manifests []descriptor
	for _, arch := range []string{"amd64", "arm64"} {
		manifests = append(manifests, r.manifest(&l, arch, binaries[arch]))
	}
	index := l.addJSON(typeIndex, map[string]any{
		"schemaVersion": 2, "mediaType": typeIndex, "manifests": manifests,
		"annotations": r.annotations(),
	})
	index.Annotations = map[string]string{"org.opencontainers.image.ref.name": r.version}
	l = append(l, entry{name: "index.json", content: asJSON(
		map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": []descriptor{index}})})
	return archive(l, r.date, false)
}

// manifest adds the image of one architecture: the binary, /tmp, and a folder for results.
func (r *release) manifest(l *layout, arch string, binary []byte) descriptor {
	files := archive([]entry{
		{name: "tare", content: binary, mode: 0o755},
		{name: "tmp/", mode: 0o1777},
		{name: "work/", mode: 0o755, owner: nobody},
	}, r.date, false)
	created := r.date.UTC().Format(time.RFC3339)
	config := l.addJSON(typeConfig, map[string]any{
		"architecture": arch, "os": "linux", "created": created,
		"config": map[string]any{
			"User": "65532:65532", "WorkingDir": "/work", "Entrypoint": []string{"/tare"},
			"Env": []string{"HOME=/work", "PATH=/"}, "Labels": r.annotations(),
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + sum(files)}},
		"history": []map[string]string{{"created": created, "created_by": "make dist"}},
	})
	d := l.addJSON(typeManifest, map[string]any{
		"schemaVersion": 2, "mediaType": typeManifest, "config": config,
		"layers": []descriptor{l.add(typeLayer, compress(files))}, "annotations": r.annotations(),
	})
	d.Platform = &platform{Architecture: arch, OS: "linux"}
	return d
}

func (r *release) annotations() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    "tare",
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.version":  r.version,
		"org.opencontainers.image.revision": r.commit,
		"org.opencontainers.image.created":  r.date.UTC().Format(time.RFC3339),
	}
}

// Pins the Go module whose CRDs tests apply. Nothing is built from it, so `go mod tidy` does not apply.
module plimsoll.dev/tools/flux-kustomize-controller

go 1.26

require github.com/fluxcd/kustomize-controller v1.9.6

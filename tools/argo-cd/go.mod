// Pins the Go module whose CRDs tests apply. Nothing is built from it, so `go mod tidy` does not apply.
module plimsoll.dev/tools/argo-cd

go 1.26

require github.com/argoproj/argo-cd/v3 v3.5.7

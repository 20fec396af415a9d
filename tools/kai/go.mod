// Pins the Go module whose queue CRDs the sandbox installs. Nothing is built from it, so `go mod tidy` does not apply.
module plimsoll.dev/tools/kai

go 1.26

require github.com/NVIDIA/KAI-scheduler v0.12.0

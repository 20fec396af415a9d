// Pins the Go module with the CRD of ProvisioningRequest. Nothing is built from it, so `go mod tidy` does not apply.
module plimsoll.dev/tools/cluster-autoscaler

go 1.26

require k8s.io/autoscaler/cluster-autoscaler/apis v0.0.0-20240830133931-adfbe7e45277

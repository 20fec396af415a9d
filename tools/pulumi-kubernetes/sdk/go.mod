// Stands in for the plugin's Go SDK, of which the plugin uses these few declarations. The SDK has the types of every API
// version of Kubernetes: most of the plugin's build, for objects that the plugin reads as maps.
module github.com/pulumi/pulumi-kubernetes/sdk/v4

go 1.26

require github.com/pulumi/pulumi/sdk/v3 v3.215.0

// Package v2 registers the objects of charts and manifests.
package v2

import "github.com/pulumi/pulumi/sdk/v3/go/pulumi"

type object struct{ pulumi.CustomResourceState }

// RegisterResource registers one object by its API version and kind.
func RegisterResource(
	ctx *pulumi.Context, apiVersion, kind, name string, fields pulumi.Input, options ...pulumi.ResourceOption,
) (pulumi.CustomResource, error) {
	if apiVersion == "v1" {
		apiVersion = "core/v1"
	}
	var registered object
	if err := ctx.RegisterResource("kubernetes:"+apiVersion+":"+kind, name, fields, &registered, options...); err != nil {
		return nil, err
	}
	return &registered, nil
}

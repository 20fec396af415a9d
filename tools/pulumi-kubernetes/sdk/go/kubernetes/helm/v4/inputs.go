// Package v4 has the inputs of a Chart that are objects.
package v4

import (
	"reflect"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// RepositoryOpts says where a chart comes from.
type RepositoryOpts struct {
	CaFile   pulumi.AssetOrArchive `pulumi:"caFile"`
	CertFile pulumi.AssetOrArchive `pulumi:"certFile"`
	KeyFile  pulumi.AssetOrArchive `pulumi:"keyFile"`
	Password *string               `pulumi:"password"`
	Repo     *string               `pulumi:"repo"`
	Username *string               `pulumi:"username"`
}

// RepositoryOptsInput is a RepositoryOpts that may not be known yet.
type RepositoryOptsInput interface {
	pulumi.Input
	ToRepositoryOptsOutput() RepositoryOptsOutput
}

// RepositoryOptsOutput is what the engine passes for one.
type RepositoryOptsOutput struct{ *pulumi.OutputState }

func (RepositoryOptsOutput) ElementType() reflect.Type { return reflect.TypeFor[RepositoryOpts]() }

func (o RepositoryOptsOutput) ToRepositoryOptsOutput() RepositoryOptsOutput { return o }

// PostRenderer is a command that changes the rendered manifests.
type PostRenderer struct {
	Args    []string `pulumi:"args"`
	Command string   `pulumi:"command"`
}

// PostRendererInput is a PostRenderer that may not be known yet.
type PostRendererInput interface {
	pulumi.Input
	ToPostRendererOutput() PostRendererOutput
}

// PostRendererOutput is what the engine passes for one.
type PostRendererOutput struct{ *pulumi.OutputState }

func (PostRendererOutput) ElementType() reflect.Type { return reflect.TypeFor[PostRenderer]() }

func (o PostRendererOutput) ToPostRendererOutput() PostRendererOutput { return o }

func init() {
	pulumi.RegisterOutputType(RepositoryOptsOutput{})
	pulumi.RegisterOutputType(PostRendererOutput{})
}

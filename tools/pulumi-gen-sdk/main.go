// Writes the SDK of a Pulumi package for programs in a language: pulumi-gen-sdk go|nodejs SCHEMA.json FOLDER.
//
// Newer language hosts do this for `pulumi package gen-sdk` and `pulumi package add`, with the same generators; those
// that the module proxy has do not.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	gogen "github.com/pulumi/pulumi/pkg/v3/codegen/go"
	"github.com/pulumi/pulumi/pkg/v3/codegen/nodejs"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
)

const tool = "pulumi-gen-sdk"

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: "+tool+" go|nodejs SCHEMA.json FOLDER")
		os.Exit(2)
	}
	if err := generate(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func generate(language, file, folder string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	// The package refers to no other, so that nothing is ever loaded.
	noOther := schema.NewCachedLoader(nil)
	var spec schema.PackageSpec
	if err := json.Unmarshal(text, &spec); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	// The SDK for Go is a module, as that of `pulumi package add`.
	spec.Meta = &schema.MetadataSpec{SupportPack: language == "go"}
	languages := map[string]schema.Language{"go": gogen.Importer, "nodejs": nodejs.Importer}
	pkg, err := schema.ImportSpec(spec, languages, noOther, schema.ValidationOptions{})
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	sources, err := sourcesOf(language, pkg, noOther)
	if err != nil {
		return err
	}
	for name, content := range sources {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func sourcesOf(language string, pkg *schema.Package, loader schema.ReferenceLoader) (map[string][]byte, error) {
	switch language {
	case "go":
		return gogen.GeneratePackage(tool, pkg, nil)
	case "nodejs":
		return nodejs.GeneratePackage(tool, pkg, nil, nil, true, loader)
	}
	return nil, fmt.Errorf("%s: is neither go nor nodejs", language)
}

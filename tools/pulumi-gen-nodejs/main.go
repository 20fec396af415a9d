// Writes the SDK of a Pulumi package for Node.js: pulumi-gen-nodejs SCHEMA.json FOLDER.
//
// Newer language hosts of Node.js do this for `pulumi package add`, with the same generator; the one that the module
// proxy has does not.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pulumi/pulumi/pkg/v3/codegen/nodejs"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: pulumi-gen-nodejs SCHEMA.json FOLDER")
		os.Exit(2)
	}
	if err := generate(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func generate(file, folder string) error {
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
	pkg, err := schema.ImportSpec(spec, map[string]schema.Language{"nodejs": nodejs.Importer}, noOther, schema.ValidationOptions{})
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	sources, err := nodejs.GeneratePackage("pulumi-gen-nodejs", pkg, nil, nil, true, noOther)
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

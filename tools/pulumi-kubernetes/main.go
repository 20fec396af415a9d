// Pulumi's Kubernetes plugin, from its public Go module. The module has no copy of the schema that its own main package
// embeds: this one reads it from the file beside the program, where the sandbox puts it.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
)

// version is set by the linker.
var version = "0.0.0"

func main() {
	// The engine warns, in each update, of a plugin that is older than the SDK. The sandbox has put this one where the
	// SDK's is looked for: it answers with that version.
	if asked, found := strings.CutPrefix(filepath.Base(filepath.Dir(os.Args[0])), "resource-kubernetes-v"); found {
		version = asked
	}
	schema, err := beside("schema.json")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	provider.Serve("kubernetes", version, schema, []byte("{}"))
}

func beside(name string) ([]byte, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(filepath.Dir(program), name))
}

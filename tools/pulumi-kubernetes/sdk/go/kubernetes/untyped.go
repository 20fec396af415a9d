// Package kubernetes has the arguments of objects that are known only as maps.
package kubernetes

import "reflect"

// UntypedArgs are the fields of an object.
type UntypedArgs map[string]any

// ElementType is that of the arguments once they are known.
func (UntypedArgs) ElementType() reflect.Type { return reflect.TypeFor[map[string]any]() }
